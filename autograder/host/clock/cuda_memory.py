"""Memory for rounds on a GPU: one block for inputs and outputs, which the worker has mapped before the round.

Mapping takes too long to be part of a round. So the clock starts before a kernel of the host writes the inputs. The
processes take turns on the device, and a process that computes at that time delays its own inputs. For the same reason
another kernel reads the outputs, after all work that the worker has queued. Not yet run on CUDA.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.host.clock.memory import SPOTS, Parcel, Problem, places
from autograder.protocol.device_memory import SharedBlock
from autograder.protocol.requests.timed_rounds import Block, Place

Allocate = Callable[[int], tuple[Any, torch.Tensor]]
"""Makes a block of that many bytes, with `descriptor` and `close`, and the tensor of its bytes."""


def cuda_block(size_bytes: int) -> tuple[SharedBlock, torch.Tensor]:
    """Allocate a block on the current device."""
    device = torch.cuda.current_device()
    block = SharedBlock.made(size_bytes, device=device)
    return block, torch.as_tensor(block, device=f"cuda:{device}")


class DeviceMemory:
    """Memory of a GPU for outputs like `forms` and inputs like `input_forms`, for all problems of a round."""

    def __init__(
        self, forms: Sequence[torch.Tensor], input_forms: Sequence[torch.Tensor], *, allocate: Allocate = cuda_block
    ) -> None:
        *starts, used = places([f.nbytes for f in (*forms, *input_forms)])
        self._output_bytes = starts[len(forms)] if input_forms else used
        self._block, self._bytes = allocate(used)
        placed = list(zip(starts, (*forms, *input_forms), strict=True))
        self._outputs = placed[: len(forms)]
        self._inputs = [_view(self._bytes, at, form) for at, form in placed[len(forms) :]]
        self._places = tuple(_place(at, form) for at, form in placed)
        self._fd = self._block.descriptor()
        self._private: list[torch.Tensor] = []
        self._spots = self._drawn()

    def lent(self) -> Parcel:
        """Return the block's descriptor, and where outputs and inputs lie in it."""
        count = len(self._outputs)
        block = Block(self._bytes.numel(), self._places[:count], self._places[count:])
        return Parcel(fds=(self._fd,), block=block)

    def parcel(self, problems: Sequence[Problem]) -> Parcel:
        """Keep private copies; nothing is sent, because the worker knows where inputs lie."""
        self._private = [t.to(self._bytes.device, copy=True) for problem in problems for t in problem]
        self._spots = self._drawn()
        self._wait()
        return Parcel()

    def deliver(self) -> None:
        """Write the inputs where the worker reads them."""
        for shared, private in zip(self._inputs, self._private, strict=True):
            shared.copy_(private)
        self._wait()

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

    def _drawn(self) -> torch.Tensor:
        drawn = torch.frombuffer(bytearray(os.urandom(8 * SPOTS)), dtype=torch.int64)
        return torch.remainder(drawn, self._output_bytes).to(self._bytes.device)

    def _wait(self) -> None:
        if self._bytes.is_cuda:
            torch.cuda.synchronize(self._bytes.device)


def _place(first_byte: int, form: torch.Tensor) -> Place:
    return Place(first_byte, str(form.dtype).removeprefix("torch."), tuple(form.shape))


def _view(block: torch.Tensor, first_byte: int, form: torch.Tensor) -> torch.Tensor:
    return block[first_byte : first_byte + form.nbytes].view(form.dtype).reshape(form.shape)
