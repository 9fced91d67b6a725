"""A BatchNorm that evaluates goes into the convolution before it; look-alikes stay."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.fusion.passes.conv_batch_norm import ConvBatchNorm
from tests.course_lib.fusion.passes.batch_norm_programs import IMAGE, Image, Tensor, folds
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same


@pytest.mark.parametrize("bias", [True, False])
def test_a_batch_norm_is_folded_and_checkpoints_load_and_all_gradients_flow(bias: bool) -> None:
    folds(Image(bias), IMAGE, "conv_batch_norm")


def test_a_batch_norm_that_averages_over_all_batches_stays_while_it_trains_and_is_folded_afterwards() -> None:
    program = Image().train()
    program.norm = nn.BatchNorm2d(4, momentum=None)
    result = left_alone(program, IMAGE, "conv_batch_norm", "training")
    same(program, result, IMAGE, modes=("train",))
    assert program.norm.momentum is None
    program(*IMAGE)
    assert fused(program.eval(), IMAGE, "conv_batch_norm").num_matches == 1


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


SIGNAL = (normal(3, 4, 40),)


class Signal(nn.Module):
    """A convolution of one dimension, and a BatchNorm of its channels."""

    def __init__(
        self, *, bias: bool = True, read: Callable[["Signal", Tensor], object] | None = None, **options: Any
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, bias=bias, **options)
        self.norm, self.turned = nn.BatchNorm1d(6), nn.ConvTranspose1d(4, 6, 3)
        self.norm.running_mean, self.norm.running_var = torch.randn(6), torch.rand(6) + 0.5
        self.norm.weight, self.norm.bias = nn.Parameter(torch.randn(6)), nn.Parameter(torch.randn(6))
        self.read = read
        self.eval()

    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x)) if self.read is None else self.read(self, x)


def _by_functions(m: Signal, x: Tensor) -> Tensor:
    norm = m.norm
    convolved = F.conv1d(x, m.conv.weight, m.conv.bias, stride=2, padding="valid")
    return F.batch_norm(convolved, norm.running_mean, norm.running_var, norm.weight, norm.bias)


SIGNALS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no bias": {"bias": False},
    "stride and dilation": {"stride": 2, "dilation": 2, "padding": 3},
    "groups": {"groups": 2},
    "padding of the same": {"padding": "same"},
    "functions": {"read": _by_functions},
}


@pytest.mark.parametrize("case", SIGNALS)
def test_a_batch_norm_of_a_signal_is_folded(case: str) -> None:
    folds(Signal(**SIGNALS[case]), SIGNAL, "conv_batch_norm")
    for given in (Signal(**SIGNALS[case]), torch.export.export(Signal(**SIGNALS[case]), SIGNAL)):
        result = fuse(given, SIGNAL, (ConvBatchNorm(once=True), "dead_code"))
        assert result.cost_after.launches == 1  # type: ignore[union-attr]  # the shapes are known
        program = given.module() if isinstance(given, torch.export.ExportedProgram) else given
        torch.testing.assert_close(result.graph_module(*SIGNAL), program(*SIGNAL))


UNFOLDED_SIGNALS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...], tuple[str, ...]]] = {
    "training": (lambda: Signal().train(), SIGNAL, ("training",)),
    "read twice": (lambda: Signal(read=lambda m, x: m.norm(y := m.conv(x)) + y), SIGNAL, ("other users",)),
    "no batch": (lambda: Signal(), (normal(4, 8),), ("shape",)),  # six channels of six numbers: BatchNorm takes rows
    "borders": (lambda: Signal(padding=1, padding_mode="circular"), SIGNAL, ()),
    "transposed convolution": (lambda: Signal(read=lambda m, x: m.norm(m.turned(x))), SIGNAL, ()),
    "something between": (lambda: Signal(read=lambda m, x: m.norm(torch.relu(m.conv(x)))), SIGNAL, ()),
    "another order": (lambda: Signal(read=lambda m, x: m.conv(x[:, :4]) + m.norm(x.repeat(1, 2, 1)[:, :6]).sum()),
                      SIGNAL, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFOLDED_SIGNALS)
def test_a_batch_norm_of_a_signal_that_must_not_be_folded_stays(case: str) -> None:
    build, inputs, rules = UNFOLDED_SIGNALS[case]
    program = build()
    result = left_alone(program, inputs, "conv_batch_norm", *rules)
    same(program, result, inputs, modes=("train" if case == "training" else "eval",))


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
