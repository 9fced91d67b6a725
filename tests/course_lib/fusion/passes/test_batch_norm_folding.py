"""The passes conv_batch_norm and linear_batch_norm: a BatchNorm that evaluates goes into the layer beside it."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor


class Convolved(nn.Module):
    """A convolution, a linear layer, and a BatchNorm with statistics after each."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1, stride=2, bias=bias), nn.BatchNorm2d(4)
        self.linear, self.linear_norm = nn.Linear(5, 4, bias=bias), nn.BatchNorm1d(4)
        self.next = nn.Linear(4, 3, bias=bias)
        for norm in (self.norm, self.linear_norm):
            norm.running_mean, norm.running_var = torch.randn(4), torch.rand(4) + 0.5
            norm.weight, norm.bias = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
        self.eval()

    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x)) if x.ndim == 4 else self.linear_norm(self.linear(x))


class Image(Convolved):
    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x))


class Row(Convolved):
    def forward(self, x: Tensor) -> object:
        return self.linear_norm(self.linear(x))


class Before(Convolved):
    """BatchNorm first."""

    def forward(self, x: Tensor) -> object:
        return self.next(self.linear_norm(x))


class Between(Convolved):
    """Two layers, and BatchNorm between them: it goes into the first."""

    def forward(self, x: Tensor) -> object:
        return self.next(self.linear_norm(self.linear(x)))


IMAGE, ROWS = (normal(2, 3, 16, 16),), (normal(33, 5),)
FOLDS = {
    "after a convolution": (Image, IMAGE, "conv_batch_norm"),
    "after a linear layer": (Row, ROWS, "linear_batch_norm"),
    "before a linear layer": (Before, (normal(33, 4),), "linear_batch_norm"),
    "between two": (Between, ROWS, "linear_batch_norm"),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", FOLDS)
def test_a_batch_norm_is_folded_and_checkpoints_load_and_all_gradients_flow(case: str, bias: bool) -> None:
    build, inputs, name = FOLDS[case]
    program = build(bias)
    result = fused(program, inputs, name)
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved
    assert not any("BatchNorm" in called for called in count_operators(result.graph_module))
    same(program, result, inputs, modes=("eval",))


class ConvolvedTwice(Image):
    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x)) + self.conv(x * 2)


def test_a_convolution_that_is_called_twice_keeps_its_own_weights_elsewhere() -> None:
    program = ConvolvedTwice()
    same(program, fused(program, IMAGE, "conv_batch_norm"), IMAGE, modes=("eval",))


class ResultUsedTwice(Image):
    def forward(self, x: Tensor) -> object:
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
    left_alone(Before(), (normal(2, 4),), "linear_batch_norm", "traffic")


def test_a_convolution_with_reflected_borders_is_no_match() -> None:
    program = Image()
    program.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect").eval()
    left_alone(program, IMAGE, "conv_batch_norm")


def test_channels_last_of_a_linear_layer_are_not_its_second_dimension() -> None:
    class Cubes(Row):
        def __init__(self) -> None:
            super().__init__()
            self.linear_norm = nn.BatchNorm1d(4)
            self.eval()

    left_alone(Cubes(), (normal(9, 4, 5),), "linear_batch_norm", "shape")


class NormUsedTwice(Before):
    def forward(self, x: Tensor) -> object:
        normed = self.linear_norm(x)
        return self.next(normed) + normed[:, :3]


def test_a_batch_norm_whose_result_somebody_else_reads_stays() -> None:
    left_alone(NormUsedTwice(), (normal(33, 4),), "linear_batch_norm", "other users")
