"""Written-out attention becomes PyTorch's operator when asked for, and only where it is proven to be the same."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import Sdpa, fuse
from course_lib.graph import count_operators
from course_lib.models import TransformerConfig
from course_lib.models.transformer import SelfAttention
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
QKV = tuple(normal(2, 3, size, 4) * scale for size, scale in ((5, 1), (7, 2), (7, 3)))
CONFIG = TransformerConfig(hidden_size=12, num_heads=3, intermediate_size=12, num_layers=1, dropout=0.3)


def _attend(scores: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) @ v


SPELLINGS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "divided": lambda q, k, v: _attend(q @ k.transpose(-1, -2) / 2.0, v),
    "multiplied": lambda q, k, v: _attend(0.3 * torch.matmul(q, torch.transpose(k, 2, 3)), v),
    "the query divided first": lambda q, k, v: _attend((q / math.sqrt(4)) @ k.mT, v),
    "the query multiplied first": lambda q, k, v: _attend((q * 4**-0.5) @ k.permute(0, 1, 3, 2), v),
    "functional": lambda q, k, v: F.softmax(q.matmul(k.transpose(-2, -1)) / math.sqrt(4), 3).matmul(v),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_fused_and_computes_the_same(spelling: str) -> None:
    result = fused(SPELLINGS[spelling], QKV, "sdpa")
    assert count_operators(result.graph_module) == {"Attention": 1}
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved  # type: ignore[union-attr]
    same(SPELLINGS[spelling], result, QKV)


def test_a_layer_with_dropout_is_fused_and_computes_the_same_in_both_modes() -> None:
    layer, inputs = SelfAttention(CONFIG), (normal(2, 5, 12),)

    def program(hidden: Tensor) -> Tensor:
        return layer(hidden)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, hidden: Tensor) -> Tensor:
            return self.layer(hidden, None)

    same(Layer(), fused(Layer(), inputs, "sdpa"), inputs)


def _masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend(q @ k.transpose(-1, -2) / 2.0 + mask, v)


def test_a_mask_needs_a_promise_because_a_row_may_be_masked_whole() -> None:
    mask = torch.zeros(2, 1, 5, 7)
    mask[:, :, :, 4:] = -math.inf
    left_alone(_masked, (*QKV, mask), "sdpa", "mask")
    result = fuse(_masked, (*QKV, mask), (Sdpa(every_row_sees_something=True),))
    assert result.num_matches == 1
    same(_masked, result, (*QKV, mask), gradients=False)


LOOKALIKES: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], object], str]] = {
    "other dimension": (lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 2, dim=-2) @ v, "argument"),
    "another type": (lambda q, k, v: F.softmax(q @ k.transpose(2, 3) / 2, 3, dtype=torch.float) @ v, "dtype"),
    "negative scale": (lambda q, k, v: _attend(q @ k.transpose(-1, -2) / -2.0, v), "argument"),
    "scaled by a tensor": (lambda q, k, v: _attend(q @ k.transpose(-1, -2) / q.sum(), v), "argument"),
    "dropout for good": (
        lambda q, k, v: F.dropout(torch.softmax(q @ k.transpose(-1, -2) / 2, -1), 0.5, True) @ v,
        "training",
    ),
    "broadcast heads": (lambda q, k, v: _attend(q @ k[:, :1].transpose(-1, -2) / 2.0, v), "shape"),
}


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    program, rule = LOOKALIKES[case]
    left_alone(program, QKV, "sdpa", rule)


def test_probabilities_that_are_returned_must_be_computed() -> None:
    def program(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        probabilities = torch.softmax(q @ k.transpose(-1, -2) / 2.0, dim=-1)
        return probabilities @ v, probabilities

    left_alone(program, QKV, "sdpa", "is an output")


def test_it_does_not_run_unless_it_is_named() -> None:
    assert "sdpa" not in fuse(SPELLINGS["divided"], QKV).num_matches_by_pass
