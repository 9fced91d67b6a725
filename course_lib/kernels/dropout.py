"""Compute dropout masks as a function of a seed, so that the backward pass recomputes the mask instead of reading it.

Ordinary dropout writes a mask in the forward pass and reads it in the backward pass, one byte for each element. A fused
operator saves the seed instead, which is eight bytes, and recomputes the mask. The seed is drawn from PyTorch's random
numbers, so `torch.manual_seed` repeats a run, and activation checkpointing repeats a mask.

The generator is Philox4x32 with seven rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", 2011; the fewest rounds that pass all their tests). It has no state: four random words are a function of a
key, here the seed, and of a counter, here the position of four neighbours in a row. So each GPU thread computes its own
words independently, and the formula below gives the same words on any device.
"""

from typing import Any

import torch

ROUNDS = 7
_SEEDS = 2**63 - 1
_WORD = 2**32 - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def draw_seed(like: torch.Tensor) -> torch.Tensor:
    """Return a fresh seed: an int64 tensor of one element, on the device of `like`.

    It is a tensor, since a Python number would make the host wait for the device, and would be constant in a CUDA
    graph.
    """
    return torch.randint(_SEEDS, (1,), dtype=torch.int64, device=like.device)


def dropout_factors(seed: torch.Tensor, p: float, like: torch.Tensor) -> torch.Tensor:
    """Return the factors of dropout: 0 with probability `p`, else 1 / (1 − p), in the shape and dtype of `like`.

    The same seed, shape and `p` give the same zeros, whatever the strides, the dtype and the device.
    """
    if p == 1:
        return torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    kept = _random_words(seed, like) >= threshold(p)
    return kept.to(like.dtype) / (1 - p)


def threshold(p: float) -> int:
    """Return the number below which a random word of 32 bits lies with probability `p`."""
    return min(round(p * 2**32), _WORD)


def _random_words(seed: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a random word of 32 bits for each element of `like`, as int64."""
    columns = like.shape[-1]
    rows = like.numel() // max(columns, 1)
    groups = -(-columns // 4)
    row = torch.arange(rows, device=like.device)[:, None]
    group = torch.arange(groups, device=like.device)
    zero = torch.zeros_like(row)
    words = _philox((group, row & _WORD, row >> 32, zero), (seed & _WORD, (seed >> 32) & _WORD))
    # (rows, groups, 4) → (rows, 4 · groups), of which the last group may exceed the columns
    return torch.stack(words, dim=-1).flatten(1)[:, :columns].reshape(like.shape)


def _philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[torch.Tensor, ...]:
    """Return four random words, given four words of a counter and two of a key: int64 tensors that hold 32 bits."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        # The product has 64 bits; int64 holds all of them, though the sign may differ.
        a, b = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = ((b >> 32) & _WORD) ^ c1 ^ k0, b & _WORD
        c2, c3 = ((a >> 32) & _WORD) ^ c3 ^ k1, a & _WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & _WORD, (k1 + _KEY_STEPS[1]) & _WORD
    return tuple(torch.broadcast_tensors(c0, c1, c2, c3))
