"""Rounds under the host's clock: the loaded function, called on several problems in one request.

The host lends the memory for the outputs first. If student code is loaded, a round's inputs come with the start signal,
so the answer cannot begin earlier. Its outputs are in the host's memory before the reply, and the host reads random
places of them before it stops the clock. A process that holds only a graph made by the host needs neither, so its time
contains only the computation. On a GPU it also captures the calls of a round in a CUDA graph: otherwise the time of a
small program is that of its launches by Python, which is longer for a fused operator than for PyTorch's own.
"""

import contextlib
import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from autograder.protocol import Done, Handlers, Result, Tensors
from autograder.protocol.device_memory import SharedBlock
from autograder.protocol.requests.timed_rounds import (
    Block,
    Captured,
    CaptureRound,
    FetchOutputs,
    HoldInputs,
    LendOutputs,
    Place,
    RunRound,
)
from autograder.worker import shared_memory
from autograder.worker.step_of_graph import replayed
from autograder.worker.tensors import NotATensorError, to_torch

# mallopt(3): -4 is M_MMAP_MAX, -1 M_TRIM_THRESHOLD, -2 M_TOP_PAD
KEEP_FREED_MEMORY = ((-4, 0), (-1, 2**31 - 1), (-2, 64 << 20))


class Gpu(Protocol):
    """A GPU as a worker sees it; tests put a simulated one in its place."""

    def mapped(self, descriptor: int, size_bytes: int) -> torch.Tensor:
        """Return the tensor of the bytes of the host's block, mapped until this process ends."""

    def synchronize(self) -> None:
        """Wait until all work of this process is done, on all streams."""

    def captured(self, work: Callable[[], Any]) -> Callable[[], Any] | None:
        """Return a function that launches the kernels of `work` at once; None for work that cannot be captured."""


class Cuda:
    """The current CUDA device."""

    def mapped(self, descriptor: int, size_bytes: int) -> torch.Tensor:
        """Map the block on the current device."""
        torch.zeros(1, device="cuda")  # makes the context that mapping needs
        block = SharedBlock.of_descriptor(descriptor, size_bytes, device=torch.cuda.current_device())
        return torch.as_tensor(block, device="cuda")

    def synchronize(self) -> None:
        """Wait for the current device."""
        torch.cuda.synchronize()

    def captured(self, work: Callable[[], Any]) -> Callable[[], Any] | None:
        """Capture `work` in a CUDA graph, whose replay returns the same tensors each time."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                results = work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # work that waits for the device, or that draws in a way of its own
            return None

        def replay() -> Any:
            graph.replay()
            return results

        return replay


@dataclass
class Rounds:
    """A function under the host's clock, memory for its outputs, and the data kept between requests."""

    function: Callable[..., Any]
    outputs: list[Sequence[torch.Tensor]] = field(default_factory=list)
    stand_ins: list[Any] = field(default_factory=list)
    inputs: list[torch.Tensor] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    gpu: Gpu = field(default_factory=Cuda)
    on_gpu: bool = False
    replay: Callable[[], list[Any]] | None = None  # of the calls of one round

    def handlers(self) -> Handlers:
        """Return the request handlers for timed rounds of the function."""
        rounds: Handlers = {LendOutputs: self.lend, HoldInputs: self.hold, RunRound: self.run}
        return {**rounds, CaptureRound: self.capture, FetchOutputs: self.fetch}

    def lend(self, request: LendOutputs, tensors: Tensors) -> Result[Done]:
        """Keep the host's memory for outputs, in portions of one problem."""
        _keep_freed_memory()
        self.replay = None  # it reads and writes memory that was lent before
        if request.block is not None:
            outputs, self.inputs = device_tensors(request.block, shared_memory.of_device.pop(), self.gpu)
            if isinstance(self.function, torch.nn.Module):
                self.function.to(outputs[0].device)
        else:
            outputs = [to_torch(raw) for raw in tensors]
        self.on_gpu = request.block is not None
        self.outputs = _portions(outputs, request.each)
        self.stand_ins = [[torch.zeros_like(out) for out in outs] for outs in self.outputs]
        return Result(Done())

    def hold(self, _: HoldInputs, tensors: Tensors) -> Result[Done]:
        """Keep the inputs of the next round."""
        if tensors:  # on a GPU, inputs always lie in the block of `lend`
            self.inputs = [to_torch(raw) for raw in tensors]
        return Result(Done())

    def capture(self, request: CaptureRound, _: Tensors) -> Result[Captured]:
        """Capture the calls of a round; in a GPU's memory, inputs lie at the same addresses in each round."""
        problems = _portions(self.inputs, len(self.inputs) // request.problems)
        self.function(*problems[0])  # compiles kernels, and makes what libraries keep
        self._wait()
        self.replay = self.gpu.captured(lambda: [self.function(*problem) for problem in problems])
        return Result(Captured(self.replay is not None))

    def run(self, request: RunRound, tensors: Tensors) -> Result[Done]:
        """Call the function on every problem of the round."""
        inputs = [to_torch(raw) for raw in tensors] or self.inputs
        problems = _portions(inputs, len(inputs) // request.problems)
        if request.skip:
            self.results = [] if request.into else self.stand_ins
            if self.on_gpu:  # the device changes to this process's context for the first kernel of any round
                self.outputs[0][0].view(-1)[:1].zero_()
        elif request.into:
            for problem, outs in zip(problems, self.outputs, strict=True):
                self.function(*problem, *outs)
        elif request.replays:
            assert self.replay is not None, "the host has asked for the capture"
            for _ in range(request.replays):
                self.results = list(self.replay())
        else:
            call = self.function if request.draws is None else self._masked(request.draws)
            self.results = [call(*problem) for problem in problems]
        if request.deliver:
            self._deliver()
        self._wait()
        return Result(Done())

    def fetch(self, _: FetchOutputs, __: Tensors) -> Result[Done]:
        """Copy the results of the last round to the host's memory."""
        self._deliver()
        self._wait()  # the host reads them in a context of its own, which waits for nothing here
        return Result(Done())

    def _masked(self, draws: int) -> Callable[..., Any]:
        def call(*problem: torch.Tensor) -> Any:
            with replayed(draws):
                return self.function(*problem)

        return call

    def _wait(self) -> None:
        if self.on_gpu:
            self.gpu.synchronize()

    def _deliver(self) -> None:
        results, self.results = self.results, []
        for outs, result in zip(self.outputs, results, strict=False):  # empty if the function wrote into the outputs
            _fill(outs, list(result) if isinstance(result, tuple | list) else [result])


def _portions(tensors: Sequence[torch.Tensor], each: int) -> list[Sequence[torch.Tensor]]:
    return [tensors[i : i + each] for i in range(0, len(tensors), each)]


def _keep_freed_memory() -> None:
    """Let the C library keep large freed blocks, like CUDA's caching allocator.

    Otherwise it returns some of them to the system, depending on earlier allocations. New pages cost more than a fused
    operator: the same program then takes 0.7 ms in one process and 3 ms in the next.
    """
    with contextlib.suppress(OSError, AttributeError):  # without glibc, times scatter more
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in KEEP_FREED_MEMORY:
            mallopt(name, value)


def _fill(outs: Sequence[torch.Tensor], results: Sequence[Any]) -> None:
    """Copy the results of a call to the memory that the host reads."""
    if len(results) != len(outs):
        raise NotATensorError(f"The function returned {len(results)} outputs, where {len(outs)} are expected.")
    for out, result in zip(outs, results, strict=True):
        if type(result) is not torch.Tensor or result.shape != out.shape or result.dtype != out.dtype:
            form = f"{tuple(out.shape)} {str(out.dtype).removeprefix('torch.')}"
            raise NotATensorError(f"An output is not a torch.Tensor of {form}, as it is in the other calls.")
        out.copy_(result.detach())


def device_tensors(block: Block, descriptor: int, gpu: Gpu) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the outputs and inputs that lie in the block of `descriptor`."""
    memory = gpu.mapped(descriptor, block.size_bytes)
    os.close(descriptor)
    return _views(memory, block.outputs), _views(memory, block.inputs)


def _views(memory: torch.Tensor, places: Sequence[Place]) -> list[torch.Tensor]:
    views = []
    for place in places:
        dtype = getattr(torch, place.dtype)
        end = place.first_byte + math.prod(place.shape) * dtype.itemsize
        views.append(memory[place.first_byte : end].view(dtype).reshape(place.shape))
    return views
