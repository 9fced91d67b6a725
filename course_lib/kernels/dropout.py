"""Dropout that is repeated instead of remembered: which elements fall out is a function of one number, the seed.

Ordinary dropout writes a mask in the forward pass and reads it in the backward pass: one byte an element each time. A
fused operator keeps the seed instead, eight bytes in all, and draws the same mask again. The seed itself is drawn
from PyTorch's own random numbers, so `torch.manual_seed` repeats a run, and activation checkpointing repeats a mask.
"""

import torch

_SEEDS = 2**31  # positive in 32 bits as well, which is what some generators take


def draw_seed(like: torch.Tensor) -> torch.Tensor:
    """Return a fresh seed: an int64 tensor of one element, on the device of `like`.

    It stays a tensor, since a Python number would make the host wait for the device, and would be the same number in
    each replay of a CUDA graph.
    """
    return torch.randint(_SEEDS, (1,), dtype=torch.int64, device=like.device)


def dropout_factors(seed: torch.Tensor, p: float, like: torch.Tensor) -> torch.Tensor:
    """Return what dropout multiplies with: 0 with probability `p`, else 1 / (1 − p), in the shape and dtype of `like`.

    The same seed, shape, `p` and device give the same factors, whatever the strides and the dtype.
    """
    if p == 1:
        return torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    # Reading the number makes the host wait on CUDA; only a kernel of our own can read it on the device.
    generator = torch.Generator(device=like.device).manual_seed(int(seed.item()))
    kept = torch.empty(like.shape, dtype=torch.float32, device=like.device).bernoulli_(1 - p, generator=generator)
    return kept.to(like.dtype).div_(1 - p)
