"""Tensors over a GPU's memory that the host owns. Not yet run on CUDA."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol.device_memory import SharedBlock

Records = list[list[Any]]
"""First byte, dtype and shape of each tensor in a block."""


def cuda_bytes(descriptor: int, size_bytes: int) -> torch.Tensor:
    """The bytes of a block that the host made; mapped for as long as the process lives."""
    torch.zeros(1, device="cuda")  # makes the context that mapping needs
    block = SharedBlock.of_descriptor(descriptor, size_bytes, device=torch.cuda.current_device())
    return torch.as_tensor(block, device="cuda")


def device_tensors(
    block: dict[str, Any], descriptor: int, *, bytes_of: Callable[[int, int], torch.Tensor] = cuda_bytes
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Outputs and inputs in the block that ``descriptor`` stands for."""
    memory = bytes_of(descriptor, block["bytes"])
    os.close(descriptor)
    return _views(memory, block["outputs"]), _views(memory, block["inputs"])


def _views(memory: torch.Tensor, records: Records) -> list[torch.Tensor]:
    views = []
    for first, name, shape in records:
        dtype = getattr(torch, name)
        extent = math.prod(shape) * dtype.itemsize
        views.append(memory[first : first + extent].view(dtype).reshape(shape))
    return views
