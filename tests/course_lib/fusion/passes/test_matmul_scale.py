"""A scale after a matrix product moves to the smaller factor; look-alikes stay."""

import math
from collections.abc import Callable

import pytest
import torch

from course_lib.fusion import fuse
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


def test_a_scale_may_be_computed_from_a_size() -> None:
    def program(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b) / math.sqrt(a.size(-1))

    result = fuse(program, QK, ("matmul_scale", "dead_code"))
    assert result.num_matches_by_pass["matmul_scale"] == 1
    same(program, result, QK)


def test_no_factor_overflows_where_the_product_does_not() -> None:
    a, b = torch.full((2, 32, 4), 1e37), torch.full((2, 4, 32), 1e-10)
    for scale in (1e4, 8.0, 1.0, 0.125, 1e-3):
        gm = fuse(_scaled(scale), (a, b), ("matmul_scale",)).graph_module
        torch.testing.assert_close(gm(a, b), (a @ b) * scale)


def _scaled(scale: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda a, b: (a @ b) * scale


def test_it_does_not_run_unless_it_is_named() -> None:
    assert "matmul_scale" not in fuse(SCALES["divided"], QK).num_matches_by_pass


UNMOVED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "a tensor": (lambda a, b: (a @ b) / b.sum(), "argument"),
    "zero": (lambda a, b: (a @ b) * 0, "argument"),
    "infinity": (lambda a, b: (a @ b) / math.inf, "argument"),
    "a small product": (lambda a, b: (b @ a) / 2, "traffic"),
    "rounded down": (lambda a, b: torch.div(a @ b, 2, rounding_mode="floor"), "argument"),
    "other users": (lambda a, b: (p := a @ b, p / 2)[1] + p, "other users"),
    "half precision": (lambda a, b: (a.half() @ b.half()) / 2, "range"),
    "a larger factor": (lambda a, b: (a @ b) * 1e4, "argument"),
    "divided by a small number": (lambda a, b: (a @ b) / 0.5, "argument"),
    "a tiny number": (lambda a, b: (a @ b) * 1e-5, "argument"),
}


@pytest.mark.parametrize("case", UNMOVED)
def test_a_scale_that_must_not_move_stays(case: str) -> None:
    program, rule = UNMOVED[case]
    left_alone(program, QK, "matmul_scale", rule)
