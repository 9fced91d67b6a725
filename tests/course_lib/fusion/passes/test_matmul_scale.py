"""A scale after a matrix product moves to the smaller factor; look-alikes stay."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.fusion import MatmulScale, fuse
from course_lib.fusion.passes.matmul_scale import ScaledProduct
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


DTYPES = (torch.float32, torch.bfloat16, torch.float64)


def _of_magnitudes(seed: int, dtype: torch.dtype) -> tuple[float, tuple[Tensor, Tensor]]:
    """Return a scale and two factors whose magnitudes, by column or row or in all, are drawn from the whole range."""
    draw = torch.Generator().manual_seed(seed)
    info = torch.finfo(dtype)
    least, most = math.log10(info.smallest_normal) - 3, math.log10(info.max)
    if seed % 2:  # whose products come near to one end
        end = (least, most)[seed // 2 % 2]
        share = float(torch.rand((), generator=draw))
        powers = [torch.tensor(end * share), torch.tensor(end * (1 - share)) + torch.rand((), generator=draw) - 0.5]
    else:
        powers = [least + (most - least) * torch.rand(shape, generator=draw) for shape in ((24, 1), (1, 24))]
    made = [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in ((24, 4), (4, 24))]
    a, b = ((one * 10.0 ** power.double()).to(dtype) for one, power in zip(made, powers, strict=True))
    return (0.25, 1 / 3, 1e-4, -0.9)[seed % 4], (a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_at_every_magnitude_the_result_is_that_of_the_program(dtype: torch.dtype) -> None:
    moved = 0
    for seed in range(200):
        number, inputs = _of_magnitudes(seed, dtype)
        module = ScaledProduct(number, divides=False, first=True)
        found, expected = module(*inputs), (inputs[0] @ inputs[1]) * number
        moved += module.is_within_range(*inputs)
        info = torch.finfo(dtype)
        sums = (inputs[0].double().abs() @ inputs[1].double().abs()) * abs(number)  # which may cancel
        allowed = 4 * info.eps * sums + 8 * info.smallest_normal * info.eps
        assert torch.equal(torch.isfinite(found), torch.isfinite(expected)), seed
        finite = torch.isfinite(expected)
        assert bool(((found.double() - expected.double()).abs() <= allowed)[finite].all()), seed
    assert moved > 3


ENDS = {
    "a product overflows before it is scaled": (torch.full((32, 4), 2e19), torch.full((4, 32), 2e19)),
    "a scaled number loses digits": (torch.full((32, 4), 1e-38) * (1 + torch.rand(32, 4)), torch.full((4, 32), 1e30)),
}


@pytest.mark.parametrize("case", ENDS)
def test_at_the_ends_of_the_range_a_promise_would_be_needed(case: str) -> None:
    expected = _scaled(1e-3)(*ENDS[case])
    by_name, promised = (
        fuse(_scaled(1e-3), ENDS[case], (one,)).graph_module(*ENDS[case])
        for one in ("matmul_scale", MatmulScale(within_range=True))
    )
    assert torch.equal(by_name, expected)
    assert not torch.allclose(promised, expected, rtol=1e-5, atol=0)


def test_a_promise_leaves_two_launches_and_else_five_look_at_the_numbers() -> None:
    for one, launches in (("matmul_scale", 5), (MatmulScale(within_range=True), 2)):
        result = fuse(SCALES["divided"], QK, (one,))
        assert result.cost_after.launches == launches  # type: ignore[union-attr]  # the shapes are known
        same(SCALES["divided"], result, QK)


def test_transforms_and_tracers_take_the_order_of_the_program() -> None:
    gm = fuse(SCALES["divided"], QK, ("matmul_scale",)).graph_module
    for run in (torch.vmap(gm), make_fx(gm)(*QK), torch.export.export(gm, QK).module()):
        torch.testing.assert_close(run(*QK), SCALES["divided"](*QK))
    derived = torch.func.jvp(gm, QK, QK)[1]
    torch.testing.assert_close(derived, torch.func.jvp(SCALES["divided"], QK, QK)[1])


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
