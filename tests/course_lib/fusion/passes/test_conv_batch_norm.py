"""A BatchNorm that evaluates goes into the convolution before it; look-alikes stay."""

from collections.abc import Callable

import pytest
from torch import nn

from tests.course_lib.fusion.passes.batch_norm_programs import IMAGE, Image, Tensor, folds
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, same


@pytest.mark.parametrize("bias", [True, False])
def test_a_batch_norm_is_folded_and_checkpoints_load_and_all_gradients_flow(bias: bool) -> None:
    folds(Image(bias), IMAGE, "conv_batch_norm")


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


def test_a_convolution_with_reflected_borders_is_no_match() -> None:
    program = Image()
    program.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect").eval()
    left_alone(program, IMAGE, "conv_batch_norm")
