"""Memory for rounds on the CPU: inputs that come with the signal to go, outputs that the host looks at itself.

The inputs of each round lie in a sealed file of their own, whose descriptor travels with the signal. A file that the
worker had mapped before would show a watching thread the inputs while they are being written, and it could begin early.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from autograder.host import shared_inputs
from autograder.protocol import RawTensor
from autograder.protocol.requests.rounds import Block

SPOTS = 256
"""Elements that are read before the clock stops. Who leaves a share of the outputs for later is seen with probability
1 - (1 - share) ** SPOTS: of one percent, in 92 of 100 rounds, and a verdict takes nine rounds or more."""

Problem = tuple[torch.Tensor, ...]


@dataclass
class Parcel:
    """What travels with a request: its tensors, where they lie in the descriptor's memory, and a GPU's block."""

    tensors: Sequence[RawTensor] = ()
    first_bytes: Sequence[int] = ()
    fds: tuple[int, ...] = ()
    block: Block | None = None


class Memory(Protocol):
    """The memory of one worker's rounds, on the CPU or on a device."""

    def lent(self) -> Parcel:
        """What tells the worker, once, where outputs go."""

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """What goes with the signal of one round; prepared before the clock starts."""

    def deliver(self) -> None:
        """Write what must not be seen before the clock has started."""

    def look(self) -> torch.Tensor:
        """Read the spots, drawn by lot since the last look; before the clock stops."""

    def snapshot(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Copy all outputs, and the spots once more from that copy."""

    def mutated(self) -> bool:
        """Whether an input of the last round was written to; asked after the clock has stopped."""

    def close(self) -> None:
        """Give the memory back."""


class HostMemory:
    """Memory of the CPU, for outputs of the ``forms`` given, one list a problem."""

    def __init__(self, forms: Sequence[torch.Tensor]) -> None:
        self._forms = list(forms)
        self._first = places([f.nbytes for f in forms])
        self._size = self._first.pop()
        self._fd = os.memfd_create("outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, self._size)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self._bytes = torch.frombuffer(mmap.mmap(self._fd, self._size), dtype=torch.uint8)
        self._inputs: shared_inputs.SharedInputs | None = None
        self._spots = self._drawn()

    def lent(self) -> Parcel:
        """The outputs' descriptor and records."""
        raw = [_empty(f) for f in self._forms]
        return Parcel(raw, self._first, (self._fd,))

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """The inputs of all problems in a new sealed file, closed by the next round."""
        if self._inputs is not None:
            self._inputs.close()
        self._inputs = shared_inputs.SharedInputs([t for problem in problems for t in problem])
        self._spots = self._drawn()
        return Parcel(self._inputs.raw, self._inputs.first_bytes, (self._inputs.fd,))

    def deliver(self) -> None:
        """Nothing is left to write: the descriptor goes with the signal."""

    def look(self) -> torch.Tensor:
        """The bytes at the spots."""
        return self._bytes[self._spots]

    def snapshot(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """All outputs as tensors of the host's own."""
        copied = self._bytes.clone()
        return [_view(copied, first, form) for first, form in zip(self._first, self._forms, strict=True)], copied[
            self._spots
        ]

    def mutated(self) -> bool:
        """Whether the sealed file differs from the private copy."""
        return self._inputs is not None and bool(self._inputs.mutated())

    def close(self) -> None:
        """Close the descriptors; the worker's mapping stays valid until it is gone."""
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        os.close(self._fd)

    def _drawn(self) -> torch.Tensor:
        """Places of bytes, uniform over all outputs; the system's generator, because a seed might be guessed."""
        drawn = torch.frombuffer(bytearray(os.urandom(8 * SPOTS)), dtype=torch.int64)
        return torch.remainder(drawn, self._size)


def places(sizes: Sequence[int]) -> list[int]:
    """Where each of the blocks begins, aligned, and where all of them end."""
    places, at = [], 0
    for size in sizes:
        places.append(at)
        at += -(-max(size, 1) // shared_inputs.ALIGNMENT_BYTES) * shared_inputs.ALIGNMENT_BYTES
    return [*places, at]


def _empty(form: torch.Tensor) -> RawTensor:
    strides = tuple(torch.empty(form.shape, device="meta").stride())
    name = str(form.dtype).removeprefix("torch.")
    return RawTensor(name, tuple(form.shape), strides, bytes(form.nbytes), shared=True)


def _view(copied: torch.Tensor, first: int, form: torch.Tensor) -> torch.Tensor:
    return copied[first : first + form.nbytes].view(form.dtype).reshape(form.shape)
