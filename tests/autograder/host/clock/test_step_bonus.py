"""The bonus for the time of a training step: on a GPU alone, for forward and backward together, under a cap."""

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.exercises import find
from autograder.host import judge as judges
from autograder.host.artifacts import Artifact
from autograder.host.artifacts.declared_operators import OwnOperators
from autograder.host.clock.contest import NEEDS_GPU, contest
from autograder.host.clock.step_bonus import CAP_S, MOST, NOT_COMPILED, NOT_RIGHT, Bonus, time_step
from autograder.host.clock.step_contest import StepContest
from autograder.host.clock.trial import Plan, WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError
from autograder.host.records import BonusRecord, ExerciseRecord, ExerciseStatus, SpeedVerdict
from autograder.host.report.wording import speed_words
from autograder.host.sandbox import open_sandbox
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, traced
from autograder.protocol.requests.answers import OwnOperator
from course_lib.kernels import bias_dropout_residual_layer_norm, bias_silu
from tests.simulated_gpu import SimulatedGpu, put_in_place

SHAPES = (TensorSpec((64, 32)),)
QUICK = Plan(max_pairs=9, tries=1)
ON_GPU = SimpleNamespace(measures=True, has_cuda=True)
STACKED = 50
NONE = OwnOperators()


class Gate(nn.Module):
    """A bias and SiLU, several times."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = self.once(x)
        return x

    def once(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x + self.bias)


class Fused(Gate):
    """The same by a fused operator."""

    def once(self, x: torch.Tensor) -> torch.Tensor:
        return bias_silu(x, self.bias)


class HeavyBackward(Fused):
    """The same, where forward only makes views, and backward fills and adds up what they show."""

    def once(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.bias
        for _ in range(8):
            bias = bias.expand(STACKED, 32).select(0, 3)
        return bias_silu(x, bias)


class End(nn.Module):
    """The end of a block, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.norm = nn.Parameter(torch.zeros(32)), nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(F.dropout(x + self.bias, 0.5) + x)


class FusedEnd(End):
    """The same by a fused operator."""

    rate = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, shift = self.norm.weight, self.norm.bias
        return bias_dropout_residual_layer_norm(x, self.shown(), x, weight, shift, self.rate, True, 1e-5)

    def shown(self) -> torch.Tensor:
        return self.bias


class NoDropout(FusedEnd):
    rate = 0.0


class OtherRate(FusedEnd):
    rate = 0.51


class OtherGradient(FusedEnd):
    """Right values with a wrong gradient."""

    def shown(self) -> torch.Tensor:
        return self.bias * 1.01 - self.bias.detach() * 0.01


def program(build: type[nn.Module]) -> Program:
    return Program(build.__name__, build, SHAPES, 0, training=True)


def artifact_of(build: type[nn.Module], draw: Draw) -> Artifact:
    made = traced(program(build), draw)
    return Artifact(made.graph, made.tensors)


def bonus_of(build, sandbox=ON_GPU, *, right=True, kernels=NONE, **how):
    """Return the bonus of an answer whose graph is that of `build`, for `Gate`; it may call operators of its own."""
    student = SimpleNamespace(close=lambda: None)
    answer = SimpleNamespace(
        transform=lambda source, own: replace(artifact_of(build, Draw(1, "answer")), own=kernels), student=student
    )
    exercise = SimpleNamespace(id="step", wall_s=60.0, step=Speed(program(Gate), ideal_ratio=1.3))
    return time_step(exercise, answer, sandbox=sandbox, seed=3, right=right, **how)


def on(gpu: SimulatedGpu, monkeypatch) -> dict:
    put_in_place(gpu, monkeypatch)
    return {"gpu": gpu, "now_s": gpu.now_s}


def test_a_quicker_step_earns_the_bonus_on_a_gpu(monkeypatch):
    found = bonus_of(Fused, **on(SimulatedGpu(), monkeypatch))

    assert (found.record.points, found.record.assessed) == (MOST, True)
    assert found.speed.verdict is SpeedVerdict.PASS
    assert 0 < found.record.first_step_s < 1


def test_a_step_with_operators_of_its_own_is_not_timed_and_told_why(monkeypatch):
    own = OwnOperators((OwnOperator("step::end", "forward", "backward", ("y",), (), ("x",)),), ())

    found = bonus_of(Fused, kernels=own, **on(SimulatedGpu(), monkeypatch))

    assert (found.record.points, found.record.assessed, found.record.reason) == (0.0, False, NOT_COMPILED)


def test_the_step_as_it_was_earns_none_and_loses_nothing(monkeypatch):
    found = bonus_of(Gate, **on(SimulatedGpu(), monkeypatch))

    assert (found.record.points, found.record.assessed) == (0.0, True)
    assert found.speed.ratio == pytest.approx(1.0, rel=0.05)


def test_a_gpu_that_others_use_assesses_no_bonus_and_the_report_says_why(monkeypatch):
    gpu = SimulatedGpu()
    gpu.neighbours.append(4_000)
    found = bonus_of(Fused, **on(gpu, monkeypatch))

    assert (found.record.points, found.record.assessed) == (0.0, False)
    assert found.record.reason == (
        "The bonus was not judged, because of the machine: 1 other processes compute on NVIDIA Simulated."
    )
    record = ExerciseRecord("17", "t", 1.0, 1.0, ExerciseStatus.GRADED, speed=found.speed, bonus=found.record)
    assert speed_words(record) == "not judged, because of the machine"
    assert speed_words(replace(record, bonus=None)) == "not judged, because of the machine: counted cost decides"


def test_a_step_whose_forward_is_quick_and_whose_backward_does_the_work_is_slow(monkeypatch):
    gpu = SimulatedGpu()
    how = on(gpu, monkeypatch)
    forward = contest(
        Speed(program(Gate), 1.3), Draw(3, "forward"), None, 60.0, device="cuda", gpu=gpu,
        artifact=artifact_of(HeavyBackward, Draw(3, "forward")),
    )  # fmt: skip
    assert forward.trial(QUICK).ratio == pytest.approx(2.0, rel=0.05)

    found = bonus_of(HeavyBackward, **how)
    assert found.record.points == 0.0
    assert found.speed.verdict is SpeedVerdict.FAIL
    assert found.speed.ratio < 0.8


@pytest.mark.parametrize(("cap_s", "points"), [(CAP_S, 0.0), (10 * CAP_S, MOST)])
def test_a_first_step_that_takes_longer_than_the_cap_earns_none(monkeypatch, cap_s, points):
    minute_us = 60e6
    found = bonus_of(Fused, cap_s=cap_s, **on(SimulatedGpu(kernel_us=minute_us), monkeypatch))

    assert found.record.points == points
    assert ("not finished within 600 s" in found.record.reason) == (not points)
    assert (found.speed is None) == (not points)


def test_a_first_step_is_stopped_at_the_cap():
    sandbox = copy.copy(open_sandbox())
    sandbox.measures_on_cpu = True
    found = bonus_of(Fused, sandbox, cap_s=0.001, now_s=lambda: 0.0)  # so the worker itself is stopped

    assert (found.record.points, found.record.assessed, found.speed) == (0.0, False, None)
    assert "not finished within 0.001 s" in found.record.reason


def test_a_cpu_that_measures_shows_the_ratio_and_assesses_no_bonus():
    sandbox = copy.copy(open_sandbox())
    sandbox.measures_on_cpu = True
    found = bonus_of(Gate, sandbox)

    assert (found.record.points, found.record.assessed, found.record.reason) == (0.0, False, NEEDS_GPU)
    assert found.speed.verdict is SpeedVerdict.SHOWN
    assert found.record.first_step_s > 0


@pytest.mark.parametrize(
    ("sandbox", "right", "reason"),
    [(SimpleNamespace(measures=False), True, NEEDS_GPU), (ON_GPU, False, NOT_RIGHT)],
)
def test_where_nothing_is_measured_the_bonus_is_not_assessed(sandbox, right, reason):
    assert bonus_of(None, sandbox, right=right).record == BonusRecord(0.0, MOST, False, reason)


@pytest.mark.parametrize(("earned", "right"), [((1.0, 1.0), True), ((1.0, 0.5), True), ((1.0, 0.0), False)])
def test_the_judge_puts_the_bonus_beside_the_points_of_an_answer_that_is_right_everywhere(monkeypatch, earned, right):
    asked = []

    def timed(exercise, answer, *, right, **_):
        asked.append(right)
        return Bonus(BonusRecord(6.0, MOST, True, "Quick."))

    def share(part: float):
        def run(answer, draw) -> None:
            if part < 1:
                raise CheckFailedError("Less.", share=part)

        return run

    monkeypatch.setattr(judges, "time_step", timed)
    checks = tuple(Check(f"check {i}", "counted cost", 1.0, share(part)) for i, part in enumerate(earned))
    exercise = replace(find("17_optimise_step"), checks=checks)
    record = judges.judge(exercise, {"answer": ""}, sandbox=open_sandbox(), seed=1)

    assert asked == [right]
    assert (record.points, record.max_points, record.bonus.points) == (sum(earned), 2.0, 6.0)


def step_contest(build: type[nn.Module]) -> StepContest:
    draw = Draw(5, "end")
    source = traced(program(End), draw)
    artifact = artifact_of(build, draw).with_tensors(source.tensors)
    return StepContest(Speed(program(End), 1.3), source, open_sandbox(), 60.0, draw, artifact=artifact)


def test_a_step_with_dropout_is_timed_with_random_masks_and_verified_with_those_of_a_seed():
    assert len(step_contest(FusedEnd).trial(QUICK).pairs) == 9


@pytest.mark.parametrize("wrong", [NoDropout, OtherRate, OtherGradient], ids=lambda build: build.__name__)
def test_wrong_dropout_and_wrong_gradients_are_no_step(wrong):
    with pytest.raises(WrongTimedOutputError, match="units of rounding"):
        step_contest(wrong).trial(QUICK)


def test_only_the_capstone_has_a_bonus_and_its_ratios_are_above_what_an_unchanged_step_reaches():
    step = find("17_optimise_step").step

    assert step.on("cuda").program.inputs[0].shape == (4096, 8, 1024)
    assert replace(step.on("cuda"), shown_only="").thresholds("cuda", rebuilt=True).passing * 0.96 > 1.05
    assert step_contest(FusedEnd).thresholds.too_good == math.inf
