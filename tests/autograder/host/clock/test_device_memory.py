"""Rounds in a GPU's memory, with stand-ins for driver and device."""

import os
from typing import Any

import pytest
import torch

from autograder.host.clock.memory import DeviceMemory
from autograder.protocol.device_memory import DeviceMemoryError, SharedBlock
from autograder.protocol.requests import timed_rounds
from autograder.worker import rounds, shared_memory

FORMS = [torch.zeros(3, 5), torch.zeros(7, dtype=torch.bfloat16)]
INPUTS = [torch.zeros(3, 5), torch.zeros(5, dtype=torch.float64)]


class Driver:
    """A driver that works on numbers only and records its calls."""

    def __init__(self, failing: str = "") -> None:
        self.calls: list[str] = []
        self.failing = failing

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            first = getattr(arguments[0], "_obj", None)
            results = {
                "cuMemGetAllocationGranularity": 1 << 21,
                "cuMemCreate": 11,
                "cuMemImportFromShareableHandle": 12,
                "cuMemAddressReserve": 0x7000,
                "cuMemExportToShareableHandle": 5,
            }
            if name in results:
                first.value = results[name]
            return 2 if name == self.failing else 0

        return call


def test_a_block_is_made_mapped_shared_and_given_back():
    driver = Driver()
    block = SharedBlock.made(3_000_000, device=0, driver=driver)

    assert (block.size_bytes, block.pointer, block.descriptor()) == (1 << 22, 0x7000, 5)
    assert block.__cuda_array_interface__["shape"] == (1 << 22,)
    block.close()
    order = ["GetAllocationGranularity", "Create", "AddressReserve", "Map", "SetAccess", "ExportToShareableHandle"]
    assert driver.calls == [f"cuMem{name}" for name in [*order, "Unmap", "AddressFree", "Release"]]


def test_a_block_of_another_process_is_mapped_by_its_descriptor():
    driver = Driver()
    block = SharedBlock.of_descriptor(9, 1 << 21, device=0, driver=driver)

    assert block.pointer == 0x7000
    assert driver.calls == [
        f"cuMem{name}" for name in ("ImportFromShareableHandle", "AddressReserve", "Map", "SetAccess")
    ]


@pytest.mark.parametrize("name", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_call_of_the_driver_that_fails_is_named(name):
    with pytest.raises(DeviceMemoryError, match=f"{name} failed with status 2"):
        SharedBlock.made(100, device=0, driver=Driver(failing=name))


class Block:
    """A block in this process's memory."""

    def __init__(self, size_bytes: int) -> None:
        self.bytes = torch.zeros(size_bytes, dtype=torch.uint8)
        self.closed = False

    def descriptor(self) -> int:
        return os.memfd_create("stands for a block")

    def close(self) -> None:
        self.closed = True


class OneBlock:
    """A GPU in this process's memory, which finishes all work at once."""

    tensors = "cpu"

    def made(self, size_bytes: int) -> tuple[Block, torch.Tensor]:
        self.block = Block(size_bytes)
        return self.block, self.block.bytes

    def mapped(self, descriptor: int, size_bytes: int) -> torch.Tensor:
        return self.block.bytes[:size_bytes]

    def synchronize(self) -> None:
        pass

    def free_bytes(self) -> int:
        return 1 << 30

    def stay_busy(self) -> None:
        pass


@pytest.fixture
def lent(monkeypatch):
    """The host's memory, and the worker's rounds on the same bytes."""
    gpu = OneBlock()

    def make(function):
        memory = DeviceMemory(FORMS * 2, INPUTS * 2, gpu)
        worker = rounds.Rounds(function, gpu=gpu)
        parcel = memory.lent()
        monkeypatch.setattr(shared_memory, "of_device", [os.dup(parcel.fds[0])])
        worker.lend(timed_rounds.LendOutputs(2, parcel.block), ())
        return memory, worker

    return make


ROUND = timed_rounds.RunRound(2, into=False, skip=False, deliver=True)


def problems():
    return [(torch.randn(3, 5), torch.randn(5, dtype=torch.float64)) for _ in range(2)]


def right(x, y):
    return x * 2, torch.full((7,), float(y[0])).bfloat16()


def test_inputs_arrive_only_when_the_clock_runs_and_outputs_are_where_the_host_looks(lent):
    memory, worker = lent(right)
    given = problems()
    memory.parcel(given)
    assert not worker.inputs[0].any()
    memory.deliver()
    worker.run(ROUND, ())
    seen = memory.look()
    outputs, again = memory.snapshot()

    assert torch.equal(seen, again)
    for (x, y), found in zip(given, (outputs[:2], outputs[2:]), strict=True):
        assert all(map(torch.equal, found, right(x, y)))
    assert not memory.mutated()
    memory.close()


def test_outputs_that_change_after_the_first_reading_are_detected(lent):
    memory, worker = lent(right)
    memory.parcel(problems())
    memory.deliver()
    worker.run(ROUND, ())
    seen = memory.look()
    for outs in worker.outputs:
        for out in outs:
            out.add_(1)
    assert not torch.equal(seen, memory.snapshot()[1])
    memory.close()


def test_changed_inputs_are_detected_byte_by_byte(lent):
    memory, worker = lent(lambda x, y: (x.zero_() + 1, torch.zeros(7).bfloat16()))
    memory.parcel(problems())
    memory.deliver()
    worker.run(ROUND, ())
    assert memory.mutated()
    memory.close()
