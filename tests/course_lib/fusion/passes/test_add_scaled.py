"""A sum with a scaled product or quotient becomes one operator; look-alikes stay."""

from collections.abc import Callable

import pytest
import torch

from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
Three = Callable[[Tensor, Tensor, Tensor], object]
XAB = (normal(4, 6), normal(4, 6) * 3, normal(4, 6).abs() + 1)
SCALED: dict[str, tuple[Three, str]] = {
    "product": (lambda x, a, b: x + a * b, "torch.addcmul"),
    "product first": (lambda x, a, b: a.mul(b) + x, "torch.addcmul"),
    "scaled product": (lambda x, a, b: x + 2.5 * (a * b), "torch.addcmul"),
    "product of scaled": (lambda x, a, b: torch.add(x, b * (a * -0.5)), "torch.addcmul"),
    "quotient": (lambda x, a, b: x + a / b, "torch.addcdiv"),
    "scaled quotient": (lambda x, a, b: (a / b) * 3 + x, "torch.addcdiv"),
    "quotient of scaled": (lambda x, a, b: x + torch.div(2 * a, b), "torch.addcdiv"),
}


@pytest.mark.parametrize("case", SCALED)
def test_a_scaled_sum_becomes_one_operator(case: str) -> None:
    program, operator = SCALED[case]
    result = fused(program, XAB, "add_scaled")
    assert count_operators(result.graph_module) == {operator: 1}
    assert result.cost_after.launches == 1  # type: ignore[union-attr]
    same(program, result, XAB)


UNSCALED: dict[str, tuple[Three, str]] = {
    "alpha": (lambda x, a, b: torch.add(x, a * b, alpha=2), "alpha"),
    "rounded down": (lambda x, a, b: x + torch.div(a, b, rounding_mode="floor"), "argument"),
    "broadcast": (lambda x, a, b: x + a[:1] * b, "shape"),
    "strides": (lambda x, a, b: x.view(6, 4).t() + a * b, "shape"),
    "a number": (lambda x, a, b: x + a * 2, "shape"),
    "other users": (lambda x, a, b: (p := a * b, x + p)[1] * p, "other users"),
    "in place": (lambda x, a, b: x + a.mul_(b), "in place"),
    "two dtypes": (lambda x, a, b: x + a.double() * b, "dtype"),
}


@pytest.mark.parametrize("case", UNSCALED)
def test_a_sum_that_is_none_of_these_stays(case: str) -> None:
    program, rule = UNSCALED[case]
    left_alone(program, XAB, "add_scaled", rule)
