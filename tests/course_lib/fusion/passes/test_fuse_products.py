"""The passes around products: add_scaled, matmul_scale, and the two that fold a BatchNorm."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
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


class Convolved(nn.Module):
    """A convolution, a linear layer, and a BatchNorm with statistics after each."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1, stride=2, bias=bias), nn.BatchNorm2d(4)
        self.linear, self.linear_norm = nn.Linear(5, 4, bias=bias), nn.BatchNorm1d(4)
        for norm in (self.norm, self.linear_norm):
            norm.running_mean, norm.running_var = torch.randn(4), torch.rand(4) + 0.5
            norm.weight, norm.bias = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)) if x.ndim == 4 else self.linear_norm(self.linear(x))


class Image(Convolved):
    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Row(Convolved):
    def forward(self, x: Tensor) -> Tensor:
        return self.linear_norm(self.linear(x))


IMAGE, ROWS = (normal(2, 3, 8, 8),), (normal(33, 5),)
FOLDS = {"conv_batch_norm": (Image, IMAGE), "linear_batch_norm": (Row, ROWS)}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", FOLDS)
def test_a_batch_norm_is_folded_and_checkpoints_load_and_all_gradients_flow(name: str, bias: bool) -> None:
    build, inputs = FOLDS[name]
    program = build(bias)
    result = fused(program, inputs, name)
    assert not any("BatchNorm" in called for called in count_operators(result.graph_module))
    same(program, result, inputs, modes=("eval",))


class ConvolvedTwice(Image):
    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)) + self.conv(x * 2)


def test_a_convolution_that_is_called_twice_keeps_its_own_weights_elsewhere() -> None:
    program = ConvolvedTwice()
    same(program, fused(program, IMAGE, "conv_batch_norm"), IMAGE, modes=("eval",))


class ResultUsedTwice(Image):
    def forward(self, x: Tensor) -> Tensor:
        convolved = self.conv(x)
        return self.norm(convolved) + convolved


def _without(attribute: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        program = Image()
        options = {"statistics": {"track_running_stats": False}, "affine": {"affine": False}}[attribute]
        program.norm = nn.BatchNorm2d(4, **options).eval()
        return program

    return build


UNFOLDED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "training": (lambda: Image().train(), "training"),
    "statistics of the batch": (_without("statistics"), "statistics"),
    "no weight": (_without("affine"), "statistics"),
    "used twice": (ResultUsedTwice, "other users"),
}


@pytest.mark.parametrize("case", UNFOLDED)
def test_a_batch_norm_that_must_not_be_folded_stays(case: str) -> None:
    build, rule = UNFOLDED[case]
    left_alone(build(), IMAGE, "conv_batch_norm", rule)


def test_folding_that_moves_more_than_it_saves_is_refused() -> None:
    left_alone(Row(), (normal(2, 5),), "linear_batch_norm", "traffic")


def test_a_convolution_with_reflected_borders_is_no_match() -> None:
    program = Image()
    program.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect").eval()
    left_alone(program, IMAGE, "conv_batch_norm")


def test_channels_last_of_a_linear_layer_are_not_its_second_dimension() -> None:
    def program(x: Tensor) -> Tensor:
        return F.batch_norm(F.linear(x, torch.ones(9, 5)), torch.zeros(9), torch.ones(9), torch.ones(9), torch.ones(9))

    assert fuse(program, (normal(9, 9, 5),), ("linear_batch_norm",)).num_matches == 0
