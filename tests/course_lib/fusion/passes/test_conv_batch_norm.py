"""A BatchNorm that evaluates goes into the convolution before it; look-alikes stay."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.fusion.passes.conv_batch_norm import ConvBatchNorm
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


def test_for_inference_it_is_folded_once_into_one_launch() -> None:
    program = Image()
    result = fuse(program, IMAGE, (ConvBatchNorm(once=True),))
    assert result.num_matches == 1
    assert (result.cost_before.launches, result.cost_after.launches) == (2, 1)  # type: ignore[union-attr]
    torch.testing.assert_close(result.graph_module(*IMAGE), program(*IMAGE))
    with pytest.raises(RuntimeError, match="Missing key"):
        result.graph_module.load_state_dict(program.state_dict())
    exported = torch.export.export(program, IMAGE)
    of_exported = fuse(exported, IMAGE, (ConvBatchNorm(once=True), "dead_code"))
    torch.testing.assert_close(of_exported.graph_module(*IMAGE), program(*IMAGE))
    assert of_exported.num_matches_by_pass["conv_batch_norm"] == 1


def test_folded_once_a_convolution_that_is_called_twice_keeps_its_weights() -> None:
    program = ConvolvedTwice()
    result = fuse(program, IMAGE, (ConvBatchNorm(once=True),))
    torch.testing.assert_close(result.graph_module(*IMAGE), program(*IMAGE))
    assert "conv.weight" in result.graph_module.state_dict()
    assert fuse(result.graph_module, IMAGE, (ConvBatchNorm(once=True),)).num_matches == 0


def test_weights_that_are_inputs_cannot_be_folded_once() -> None:
    program = Image()

    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = program.norm

        def forward(self, x: Tensor, weight: Tensor) -> Tensor:
            result: Tensor = self.norm(F.conv2d(x, weight))
            return result

    result = fuse(Functional(), (*IMAGE, program.conv.weight), (ConvBatchNorm(once=True),))
    assert [one.rule for one in result.rejected] == ["computed"]
