"""The badge for the bandwidth of kernels, on a simulated GPU whose kernels and copies take known times.

Triton compiles for a real GPU only, so Python stands for the compiled launcher.
"""

import dataclasses
import functools
from types import SimpleNamespace

import pytest
import torch

from autograder.exercises import find
from autograder.host import judge as judge_module
from autograder.host.bandwidth import Bandwidth
from autograder.host.clock import contest, kernel_badge, kernel_contest
from autograder.host.clock.contest import NEEDS_GPU
from autograder.host.clock.kernel_badge import NOT_RIGHT, time_kernels
from autograder.host.grading import graded_parts
from autograder.host.kinds.triton import TritonAnswer
from autograder.host.records import Badge, ExerciseRecord, ExerciseStatus, KernelRecord
from autograder.host.sandbox import open_sandbox
from autograder.host.traced import TensorSpec
from autograder.protocol.requests.kernel_runs import LoadTimedKernels
from autograder.protocol.requests.loads import LoadAnswer, Part
from course_lib.timing.environment import lasting_problems
from tests import simulated_gpu
from tests.autograder.exercises.judged import judged, known_answer, reference
from tests.autograder.host.clock.simulated_contest import noted_replays
from tests.simulated_gpu import SimulatedGpu, SimulatedSession

SPEC = TensorSpec((64, 32))
OF = Bandwidth(torch.lerp, (SPEC, SPEC), (SPEC,), (0.3,))
EXERCISE = dataclasses.replace(find("12_masked_blend"), bandwidth=OF)
MEASURES = SimpleNamespace(measures=True, has_cuda=True)
COPY_US = 600.0


def badge(
    monkeypatch, launcher, *, share: float = 1.0, gpu: SimulatedGpu | None = None, dies: str = ""
) -> KernelRecord:
    """Return the badge of kernels that move their bytes at this share of a copy's bandwidth.

    `launcher` takes the context of the worker, and returns the function.
    """
    gpu = SimulatedGpu(COPY_US / share)
    monkeypatch.setattr(simulated_gpu, "COPY_SHARE", share)
    sent = []

    def session(sandbox, load, tensors=(), **how):
        sent.append(load)
        if isinstance(load, LoadTimedKernels):
            made = SimulatedSession(gpu, None, answer=launcher)
            made.left = 6 if "kernels" in dies else None
        else:
            made = SimulatedSession(gpu, load, tensors)
            made.left = 6 if "copy" in dies else None
        return made

    monkeypatch.setattr(kernel_contest, "Session", session)
    told = {"read": gpu.read, "now_s": gpu.now_s}
    monkeypatch.setattr(contest, "lasting_problems", functools.partial(lasting_problems, **told))
    found = time_kernels(EXERCISE, answer(), sandbox=MEASURES, seed=4, right=True, gpu=gpu)
    assert found is not None
    loads = [load for load in sent if isinstance(load, LoadTimedKernels)]
    assert all(load.launcher == "blend" and "tl.store" in load.parts[-1].text for load in loads)
    return found


def answer() -> TritonAnswer:
    """Return the reference answer; no worker starts before it is called."""
    load = LoadAnswer("triton", "blend", (Part("answer", reference("12_masked_blend")),))
    return TritonAnswer(SimpleNamespace(load=load), SimpleNamespace())


def honest(context):
    return lambda x, y: torch.lerp(x, y, 0.3)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.98, Badge.GOLD), (0.87, Badge.GOLD), (0.79, Badge.SILVER), (0.66, Badge.BRONZE), (0.5, None)],
)
def test_a_badge_follows_from_the_share_of_the_copys_bandwidth(share, expected, monkeypatch):
    found = badge(monkeypatch, honest, share=share)
    assert (found.badge, found.assessed, found.flags) == (expected, True, ()), found
    assert found.share == pytest.approx(share, rel=0.03)
    assert found.share_low <= found.share <= found.share_high
    assert found.bytes_moved == 3 * 64 * 32 * 4
    assert found.answer_us == pytest.approx(COPY_US / share, rel=0.05)
    assert found.copy_us == pytest.approx(COPY_US, rel=0.05)


def test_more_than_a_copy_allows_is_flagged_and_earns_nothing(monkeypatch):
    found = badge(monkeypatch, honest, share=1.2)
    assert found.badge is None
    assert found.flags[0].startswith("faster than memory allows")
    assert found.reason.endswith("There is no badge until a person has looked at the answer.")


def test_a_wrong_output_of_a_timed_call_earns_nothing(monkeypatch):
    found = badge(monkeypatch, lambda context: lambda x, y: torch.lerp(x, y, 0.31))
    assert (found.badge, found.share) == (None, 0.0)
    assert found.reason.startswith("In a timed call the output is")


def test_the_output_of_the_call_before_earns_nothing(monkeypatch):
    def kept(context):
        last = []

        def function(x, y):
            last.append(torch.lerp(x, y, 0.3))
            return last[0]

        return function

    assert badge(monkeypatch, kept).reason.startswith("In a timed call the output is")


def test_kernels_that_write_into_their_inputs_earn_nothing(monkeypatch):
    found = badge(monkeypatch, lambda context: lambda x, y: x.lerp_(y, 0.3))
    assert found.badge is None
    assert "wrote into its inputs" in found.reason


def test_kernels_that_end_their_process_earn_nothing_and_a_gpu_without_a_copy_blames_nobody(monkeypatch):
    found = badge(monkeypatch, honest, dies="kernels")
    assert (found.assessed, found.badge) == (True, None)
    found = badge(monkeypatch, honest, dies="kernels and copy")
    assert (found.assessed, found.badge, found.reason) == (False, None, kernel_badge.NO_COPY)


def test_no_round_of_a_students_kernels_is_replayed_twice_since_they_could_see_that_their_output_is_there(monkeypatch):
    replays = noted_replays(monkeypatch)
    assert badge(monkeypatch, honest).badge is Badge.GOLD
    assert set(replays) == {0, 1}  # 0 in empty rounds


@pytest.mark.parametrize("share", [1.0, 1.2])
def test_a_slow_gpu_gives_no_verdict_and_no_suspicion(share, monkeypatch):
    monkeypatch.setattr(SimulatedGpu, "clock_mhz", 600.0)
    found = badge(monkeypatch, honest, share=share)
    assert (found.assessed, found.badge, found.flags) == (False, None, ())
    assert "600 MHz" in found.reason


@pytest.mark.parametrize("measures", [False, True])
def test_without_a_gpu_nothing_is_assessed(measures):
    here = SimpleNamespace(measures=measures, has_cuda=False)
    assert time_kernels(EXERCISE, answer(), sandbox=here, seed=1, right=True) == KernelRecord(False, NEEDS_GPU)


def test_kernels_are_timed_only_if_every_check_passed():
    found = time_kernels(EXERCISE, answer(), sandbox=MEASURES, seed=1, right=False)
    assert found == KernelRecord(False, NOT_RIGHT)


def test_an_exercise_without_a_badge_has_none():
    exercise = dataclasses.replace(EXERCISE, bandwidth=None)
    assert time_kernels(exercise, answer(), sandbox=MEASURES, seed=1, right=True) is None


def test_the_judge_records_the_badge_and_no_point_depends_on_it():
    record = judged("12_masked_blend", reference("12_masked_blend"))
    assert record.badge == KernelRecord(False, NEEDS_GPU)
    assert record.points == record.max_points == 6


@pytest.mark.parametrize("name", ["masked_blend", "bias_quick_gelu", "long_softmax", "layer_norm", "block_end_forward"])
def test_the_copy_moves_the_bytes_of_the_task_and_reads_half_of_them(name):
    of = find(f"12_{name}").bandwidth
    tensors = [torch.empty(spec.shape, dtype=spec.dtype, device="meta") for spec in (*of.inputs, *of.outputs)]
    assert of.bytes_moved == sum(tensor.nbytes for tensor in tensors) > 100e6  # more than a cache holds
    (copied,) = kernel_contest.KernelContest(of, None, None, 1.0, None)._copied
    assert 0 <= 2 * 4 * copied.shape[0] - of.bytes_moved < 8


def test_the_judge_asks_for_a_badge_of_right_answers_only(monkeypatch):
    asked = []
    monkeypatch.setattr(judge_module, "time_kernels", lambda *_, right, **how: asked.append(right))
    judged("12_masked_blend", reference("12_masked_blend"))
    judged("12_masked_blend", known_answer("12_masked_blend", "x loaded twice"))
    endless = {"12_masked_blend": "def blend(x, y, t):\n    while True:\n        pass\n"}
    exercise = dataclasses.replace(find("12_masked_blend"), wall_s=3.0)
    record = judge_module.judge(exercise, graded_parts(exercise, endless), sandbox=open_sandbox(), seed=11)
    assert record.status is ExerciseStatus.TIMED_OUT
    assert asked == [True, False, False]


def test_a_badge_to_be_reviewed_cannot_be_recorded_and_a_record_survives_its_text():
    with pytest.raises(ValueError, match="to be reviewed"):
        KernelRecord(True, "", Badge.GOLD, flags=("look",))
    kept = KernelRecord(True, "said", Badge.GOLD, 0.9, 0.88, 0.92, 10, 1.0, 0.9)
    plain = dataclasses.asdict(kept)
    record = ExerciseRecord("12_masked_blend", "triton", 6.0, 6.0, ExerciseStatus.GRADED, badge=plain)
    assert record.badge == kept
