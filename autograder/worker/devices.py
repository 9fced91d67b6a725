"""Tensors over a GPU's memory that the host owns. Not yet run on CUDA."""

import math
import os
from collections.abc import Callable, Sequence

import torch

from autograder.protocol.device_memory import SharedBlock
from autograder.protocol.requests.timed_rounds import Block, Place


def cuda_bytes(descriptor: int, size_bytes: int) -> torch.Tensor:
    """Return the bytes of a block that the host made; mapped for as long as the process lives."""
    torch.zeros(1, device="cuda")  # makes the context that mapping needs
    block = SharedBlock.of_descriptor(descriptor, size_bytes, device=torch.cuda.current_device())
    return torch.as_tensor(block, device="cuda")


def device_tensors(
    block: Block, descriptor: int, *, bytes_of: Callable[[int, int], torch.Tensor] = cuda_bytes
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return outputs and inputs in the block that `descriptor` stands for."""
    memory = bytes_of(descriptor, block.size_bytes)
    os.close(descriptor)
    return _views(memory, block.outputs), _views(memory, block.inputs)


def _views(memory: torch.Tensor, places: Sequence[Place]) -> list[torch.Tensor]:
    views = []
    for place in places:
        dtype = getattr(torch, place.dtype)
        end = place.first_byte + math.prod(place.shape) * dtype.itemsize
        views.append(memory[place.first_byte : end].view(dtype).reshape(place.shape))
    return views
