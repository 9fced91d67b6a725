"""Memory for timed rounds, on the CPU and on a GPU: outputs lie where the host can read them.

On the CPU, inputs are sent with the start signal. The inputs of each round lie in a sealed file of their own, whose
descriptor is sent with the signal. If the worker had mapped the file before, a thread could watch the inputs being
written and begin early.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from autograder.host.clock.gpu import CUDA, Gpu
from autograder.host.shared_inputs import SharedInputs, memory_file, places
from autograder.protocol import RawTensor
from autograder.protocol.requests.timed_rounds import Block, Place

SPOTS = 256
"""Bytes that are read before the clock stops. An answer that writes a share of its outputs later is detected with
probability 1 - (1 - share) ** SPOTS: for one percent in 92 of 100 rounds, and a verdict takes nine rounds or more."""

Problem = tuple[torch.Tensor, ...]


@dataclass
class Parcel:
    """What is sent with a request: its tensors, their places in the descriptor's memory, and a GPU's block."""

    tensors: Sequence[RawTensor] = ()
    first_bytes: Sequence[int] = ()
    fds: tuple[int, ...] = ()
    block: Block | None = None


class Memory(Protocol):
    """The memory of one worker's rounds, on the CPU or on a device."""

    on_gpu: bool
    """Whether it lies on a GPU, where inputs have the same addresses in each round."""

    def lent(self) -> Parcel:
        """Return the request that tells the worker once where outputs go."""

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """Return the data to send with the start signal of one round; called before the clock starts."""

    def deliver(self) -> None:
        """Write the data that the worker must not see before the clock has started."""

    def look(self) -> torch.Tensor:
        """Read the spots, which are random in each round; called before the clock stops."""

    def snapshot(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Copy all outputs, and read the spots once more from that copy."""

    def mutated(self) -> bool:
        """Tell whether an input of the last round was changed; called after the clock has stopped."""

    def close(self) -> None:
        """Free the memory."""


class HostMemory:
    """Memory of the CPU for outputs like `forms`, for all problems of a round."""

    on_gpu = False

    def __init__(self, forms: Sequence[torch.Tensor]) -> None:
        self._forms = list(forms)
        *self._first, self._size = places(f.nbytes for f in forms)
        self._fd = memory_file(self._size)
        self._bytes = torch.frombuffer(mmap.mmap(self._fd, self._size), dtype=torch.uint8)
        self._inputs: SharedInputs | None = None
        self._spots = _spots(self._size)

    def lent(self) -> Parcel:
        """Return the outputs' descriptor and records."""
        raw = [_empty(f) for f in self._forms]
        return Parcel(raw, self._first, (self._fd,))

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """Put the inputs of all problems into a new sealed file, which the next round closes."""
        if self._inputs is not None:
            self._inputs.close()
        self._inputs = SharedInputs([t for problem in problems for t in problem])
        self._spots = _spots(self._size)
        return Parcel(self._inputs.raw, self._inputs.first_bytes, (self._inputs.fd,))

    def deliver(self) -> None:
        """Do nothing: the descriptor is sent with the signal."""

    def look(self) -> torch.Tensor:
        """Return the bytes at the spots."""
        return self._bytes[self._spots]

    def snapshot(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return all outputs as the host's own tensors, and the spots from that copy."""
        copied = self._bytes.clone()
        placed = zip(self._first, self._forms, strict=True)
        return [_view(copied, first, form) for first, form in placed], copied[self._spots]

    def mutated(self) -> bool:
        """Tell whether the sealed file differs from the private copy."""
        return self._inputs is not None and bool(self._inputs.mutated())

    def close(self) -> None:
        """Close the descriptors; the worker's mapping stays valid until the worker ends."""
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        os.close(self._fd)


def _spots(size_bytes: int) -> torch.Tensor:
    """Return random places in the outputs, uniform, from the system's generator: a seed could be guessed."""
    drawn = torch.frombuffer(bytearray(os.urandom(8 * SPOTS)), dtype=torch.int64)
    return torch.remainder(drawn, size_bytes)


def _empty(form: torch.Tensor) -> RawTensor:
    strides = tuple(torch.empty(form.shape, device="meta").stride())
    name = str(form.dtype).removeprefix("torch.")
    return RawTensor(name, tuple(form.shape), strides, bytes(form.nbytes), shared=True)


class DeviceMemory:
    """Memory of a GPU for outputs like `forms` and inputs like `input_forms`, for all problems of a round.

    It is one block, which the worker has mapped before the round: mapping takes too long to be part of a round. So the
    clock starts before a kernel of the host writes the inputs. The processes take turns on the device, and a process
    that computes at that time delays its own inputs. For the same reason another kernel reads the outputs, after all
    work that the worker has queued.
    """

    on_gpu = True

    def __init__(self, forms: Sequence[torch.Tensor], input_forms: Sequence[torch.Tensor], gpu: Gpu = CUDA) -> None:
        *starts, used = places(f.nbytes for f in (*forms, *input_forms))
        self._output_bytes = starts[len(forms)] if input_forms else used
        self._gpu = gpu
        self._block, self._bytes = gpu.made(used)
        placed = list(zip(starts, (*forms, *input_forms), strict=True))
        self._outputs = placed[: len(forms)]
        self._inputs = [_view(self._bytes, at, form) for at, form in placed[len(forms) :]]
        self._places = tuple(_place(at, form) for at, form in placed)
        self._fd = self._block.descriptor()
        self._private: list[torch.Tensor] = []
        self._spots = _spots(self._output_bytes).to(self._bytes.device)

    def lent(self) -> Parcel:
        """Return the block's descriptor, and where outputs and inputs lie in it."""
        count = len(self._outputs)
        block = Block(self._bytes.numel(), self._places[:count], self._places[count:])
        return Parcel(fds=(self._fd,), block=block)

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """Keep private copies; nothing is sent, because the worker knows where inputs lie."""
        self._private = [t.to(self._bytes.device, copy=True) for problem in problems for t in problem]
        self._spots = _spots(self._output_bytes).to(self._bytes.device)
        self._gpu.synchronize()
        return Parcel()

    def deliver(self) -> None:
        """Write the inputs where the worker reads them."""
        for shared, private in zip(self._inputs, self._private, strict=True):
            shared.copy_(private)
        self._gpu.synchronize()

    def look(self) -> torch.Tensor:
        """Return the bytes at the spots, on the CPU; this waits for the device."""
        return self._bytes[self._spots].cpu()

    def snapshot(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return all outputs, copied on the device, and the spots from that copy."""
        copied = self._bytes[: self._output_bytes].clone()
        return [_view(copied, at, form) for at, form in self._outputs], copied[self._spots].cpu()

    def mutated(self) -> bool:
        """Tell whether an input differs in any byte from the private copy."""
        pairs = zip(self._inputs, self._private, strict=True)
        return any(not torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)

    def close(self) -> None:
        """Free the block; the worker's mapping stays valid until the worker ends."""
        os.close(self._fd)
        self._inputs = []
        self._block.close()


def _place(first_byte: int, form: torch.Tensor) -> Place:
    return Place(first_byte, str(form.dtype).removeprefix("torch."), tuple(form.shape))


def _view(block: torch.Tensor, first_byte: int, form: torch.Tensor) -> torch.Tensor:
    return block[first_byte : first_byte + form.nbytes].view(form.dtype).reshape(form.shape)
