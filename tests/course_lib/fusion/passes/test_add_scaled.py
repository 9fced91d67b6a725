"""A sum with a scaled product or quotient becomes one operator; look-alikes stay."""

import functools
import math
from collections.abc import Callable

import pytest
import torch

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
Three = Callable[[Tensor, Tensor, Tensor], object]
XAB = (normal(4, 6), normal(4, 6) * 3, normal(4, 6).abs() + 1)
SCALED: dict[str, tuple[Three, tuple[str, ...]]] = {
    "product": (lambda x, a, b: x + a * b, ("torch.addcmul",)),
    "product first": (lambda x, a, b: a.mul(b) + x, ("torch.addcmul",)),
    "scaled product": (lambda x, a, b: x + 2.5 * (a * b), ("operator.mul", "torch.add")),
    "product of scaled": (lambda x, a, b: torch.add(x, b * (a * -0.5)), ("operator.mul", "torch.addcmul")),
    "scaled quotient": (lambda x, a, b: (a / b) * 3 + x, ("operator.truediv", "torch.add")),
}


@pytest.mark.parametrize("case", SCALED)
def test_a_scaled_sum_has_one_launch_less(case: str) -> None:
    program, operators = SCALED[case]
    result = fused(program, XAB, "add_scaled")
    assert tuple(sorted(count_operators(result.graph_module))) == operators
    assert result.cost_after.launches == result.cost_before.launches - 1  # type: ignore[union-attr]
    same(program, result, XAB)


EDGES = (1e-44, 1e-38, 1e-30, 1e-10, 1.0, 1e10, 1e19, 1e30, 3e38)
SCALES = (1e-30, 1e-4, 3.0, 1e10)
ORDERS: dict[str, Callable[..., Tensor]] = {
    "product": lambda x, a, b, value: x + a * b * value,
    "product of scaled": lambda x, a, b, value: x + (a * value) * b,
    "quotient": lambda x, a, b, value: x + a / b * value,
    "quotient of scaled": lambda x, a, b, value: x + (a * value) / b,
    "plain quotient": lambda x, a, b, value: x + a / b,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_values_and_gradients_at_the_ends_of_the_range_are_those_of_the_program(order: str, dtype: torch.dtype) -> None:
    a, b = (one.flatten().to(dtype) for one in torch.meshgrid(torch.tensor(EDGES), torch.tensor(EDGES), indexing="ij"))
    x = torch.ones_like(a)
    for value in SCALES:
        program = functools.partial(ORDERS[order], value=value)
        gm = fuse(_of_three(program), (x, a, b), ("add_scaled",)).graph_module
        found, expected = (_with_gradients(one, (x, a, b)) for one in (gm, program))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("order", [*ORDERS, "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_any_magnitudes_give_the_result_of_the_program_or_the_sum_that_overflow_hid(
    order: str, dtype: torch.dtype
) -> None:
    generator, largest = torch.Generator().manual_seed(7), math.log10(torch.finfo(dtype).max)
    powers = (torch.rand(3, 4000, generator=generator, dtype=torch.float64) * 2 - 1) * largest
    signs = torch.randint(0, 2, (3, 4000), generator=generator) * 2 - 1
    x, a, b = (one.to(dtype) for one in 10**powers * signs)
    x[::2] = (-(a.double() * b.double())).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype)[::2]
    for value in (1.0,) if order == "sum" else SCALES:
        program = (lambda x, a, b: x + a * b) if order == "sum" else functools.partial(ORDERS[order], value=value)
        found = fuse(_of_three(program), (x, a, b), ("add_scaled",), check=False).graph_module(x, a, b)
        expected, added = program(x, a, b), _added(order, value, a, b)
        hidden = (added.abs() > torch.finfo(dtype).max * 0.99) & (added.sign() == -x.double().sign())
        same = torch.isclose(found, expected, rtol=0, atol=0, equal_nan=True)
        close = (found.double() - expected.double()).abs() <= _rounding(dtype, added.abs() + x.double().abs())
        assert bool((same | close | hidden).all())
        assert not bool(found[hidden].isnan().any())


def _added(order: str, value: float, a: Tensor, b: Tensor) -> Tensor:
    """Return what is added, at fp64."""
    factors = a.double() / b.double() if "quotient" in order else a.double() * b.double()
    return factors * (value if order not in ("sum", "plain quotient") else 1.0)


def _rounding(dtype: torch.dtype, terms: Tensor) -> Tensor:
    info = torch.finfo(dtype)
    return 4 * info.eps * (terms + info.smallest_normal)


def _of_three(program: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, a, b: program(x, a, b)


def _with_gradients(program: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    leaves = [one.clone().requires_grad_() for one in inputs]
    result = program(*leaves)
    return [result, *torch.autograd.grad(result, leaves, torch.ones_like(result))]


UNSCALED: dict[str, tuple[Three, str]] = {
    "alpha": (lambda x, a, b: torch.add(x, a * b, alpha=2), "alpha"),
    "half precision": (lambda x, a, b: x.half() + a.half() * b.half(), "range"),
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
