"""A scale after a matrix product moves to the smaller factor; look-alikes stay."""

import math
from collections.abc import Callable

import pytest
import torch

from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
QK = (normal(2, 32, 4), normal(2, 4, 32))
SCALES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "divided": lambda a, b: torch.matmul(a, b) / math.sqrt(8),
    "multiplied": lambda a, b: 0.25 * (a @ b),
}


@pytest.mark.parametrize("case", SCALES)
def test_a_scale_moves_to_the_smaller_factor(case: str) -> None:
    result = fused(SCALES[case], QK, "matmul_scale")
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved  # type: ignore[union-attr]
    same(SCALES[case], result, QK, dtypes=(torch.float64, torch.float32, torch.bfloat16))


UNMOVED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "a tensor": (lambda a, b: (a @ b) / b.sum(), "argument"),
    "zero": (lambda a, b: (a @ b) * 0, "argument"),
    "infinity": (lambda a, b: (a @ b) / math.inf, "argument"),
    "a small product": (lambda a, b: (b @ a) / 2, "traffic"),
    "rounded down": (lambda a, b: torch.div(a @ b, 2, rounding_mode="floor"), "argument"),
    "other users": (lambda a, b: (p := a @ b, p / 2)[1] + p, "other users"),
    "half precision": (lambda a, b: (a.half() @ b.half()) / 2, "dtype"),
}


@pytest.mark.parametrize("case", UNMOVED)
def test_a_scale_that_must_not_move_stays(case: str) -> None:
    program, rule = UNMOVED[case]
    left_alone(program, QK, "matmul_scale", rule)
