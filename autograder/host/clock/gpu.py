"""The calls to a GPU that the host makes for its clock; tests put a simulated GPU in its place."""

from typing import Any, Protocol

import torch

from autograder.protocol.device_memory import SharedBlock
from course_lib.timing.cuda_clocks import device_sleep

BUSY_PARTS, BUSY_CYCLES = 50, 20_000_000  # 10 ms each at 2 GHz


class Gpu(Protocol):
    """A GPU as the host sees it."""

    tensors: str
    """The device of its tensors."""

    def made(self, size_bytes: int) -> tuple[Any, torch.Tensor]:
        """Allocate a block, with `descriptor` and `close`; return it and the tensor of its bytes."""

    def synchronize(self) -> None:
        """Wait until all work of this process is done, on all streams."""

    def free_bytes(self) -> int:
        """Return how much memory is free."""

    def stay_busy(self) -> None:
        """Queue about half a second of work, without waiting for it: only a GPU that works shows its real clock."""


class Cuda:
    """The current CUDA device."""

    tensors = "cuda"

    def made(self, size_bytes: int) -> tuple[SharedBlock, torch.Tensor]:
        """Allocate a block on the current device."""
        torch.zeros(1, device="cuda")  # makes the context that mapping needs
        device = torch.cuda.current_device()
        block = SharedBlock.made(size_bytes, device=device)
        return block, torch.as_tensor(block, device=f"cuda:{device}")

    def synchronize(self) -> None:
        """Wait for the current device."""
        torch.cuda.synchronize()

    def free_bytes(self) -> int:
        """Ask the driver."""
        return torch.cuda.mem_get_info()[0]

    def stay_busy(self) -> None:
        """Queue many short waits, so that a slow clock delays the end by little."""
        torch.zeros(1, device="cuda")  # or the driver does not list this process
        for _ in range(BUSY_PARTS):
            device_sleep(BUSY_CYCLES)


CUDA = Cuda()
