"""Points for measured speed: earned on a GPU, not assessed elsewhere, and lost by a wrong answer on a GPU."""

import dataclasses
import threading
from types import SimpleNamespace

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.clock import speed_check
from autograder.host.clock.contest import one_at_a_time
from autograder.host.clock.trial import WrongTimedOutputError
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import CheckStatus, ExerciseStatus, SpeedRecord, SpeedVerdict
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError
from autograder.host.speed import SPEED_SHARE

EXERCISE = find("05_bias_silu_pass")
GRADED = dataclasses.replace(EXERCISE, speed=dataclasses.replace(EXERCISE.speed, points=2.0))
RECORD = SpeedRecord(
    verdict=SpeedVerdict.FAIL,
    reason="1.10 times as fast, where 1.30 was asked for (9 pairs).",
    ratio=1.1,
    ratio_low=1.0,
    ratio_high=1.2,
    pairs=9,
    attempts=2,
    answer_us=10.0,
    baseline_us=11.0,
    passing=1.3,
    full=1.65,
    ideal=2.0,
    device="cuda",
    flags=("at the boundary: look",),
)


def timed(monkeypatch, outcome, *, has_cuda=True, right=True, shown=False, exercise=GRADED):
    """Return the result of the judge's last step when measuring gives `outcome`."""

    def act(of):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(speed_check, "_contest", lambda *args: None)
    monkeypatch.setattr(speed_check, "measure", act)
    monkeypatch.setattr(speed_check, "show", act)
    sandbox = SimpleNamespace(has_cuda=has_cuda)
    return speed_check.time_answer(exercise, None, {}, sandbox=sandbox, seed=1, shown=shown, right=right)


@pytest.mark.parametrize(
    ("verdict", "share", "status", "points"),
    [
        (SpeedVerdict.PASS, 1.0, CheckStatus.PASSED, 2.0),
        (SpeedVerdict.PASS, 0.6, CheckStatus.FAILED, 1.2),
        (SpeedVerdict.FAIL, 0.0, CheckStatus.FAILED, 0.0),
        (SpeedVerdict.INCONCLUSIVE, 0.0, CheckStatus.FAILED, 0.0),
        (SpeedVerdict.ENVIRONMENT, 0.0, CheckStatus.NOT_ASSESSED, 0.0),
    ],
)
def test_on_a_gpu_the_verdict_earns_its_share(monkeypatch, verdict, share, status, points):
    found = timed(monkeypatch, (dataclasses.replace(RECORD, verdict=verdict), share))

    assert (found.check.status, found.check.points, found.check.max_points) == (status, points, 2.0)
    assert found.record.verdict is verdict
    assert ("At the boundary: look." in found.check.message) == (status is not CheckStatus.PASSED)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (WrongTimedOutputError("In a timed call it is wrong."), CheckStatus.FAILED),
        (AnswerFailedError(ExerciseStatus.TIMED_OUT, "Too long.", fatal=True), CheckStatus.ERROR),
    ],
)
def test_on_a_gpu_an_answer_that_cannot_be_timed_loses_the_share_and_keeps_it_in_the_maximum(
    monkeypatch, outcome, status
):
    found = timed(monkeypatch, outcome)

    assert (found.check.status, found.check.points, found.check.max_points) == (status, 0.0, 2.0)
    assert str(outcome) in found.check.message


def test_on_a_gpu_wrong_results_lose_the_share_without_being_timed(monkeypatch):
    found = timed(monkeypatch, None, right=False)

    assert found.check.status is CheckStatus.FAILED
    assert "results are wrong" in found.check.message


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("shown", [True, False])
def test_without_a_gpu_the_share_is_not_assessed_whatever_the_answer(monkeypatch, right, shown):
    found = timed(monkeypatch, RECORD, has_cuda=False, right=right, shown=shown)

    assert found.check.status is CheckStatus.NOT_ASSESSED
    assert (found.record is not None) == (right and shown)


def test_an_unasked_message_is_a_malformed_answer_not_a_matter_of_speed(monkeypatch):
    with pytest.raises(AnswerFailedError):
        timed(monkeypatch, AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, "twice", fatal=True))


def test_the_record_leaves_checks_that_were_not_assessed_out_of_points_and_maximum():
    solution = controls(EXERCISE.id)
    more = dataclasses.replace(GRADED, points=GRADED.points + 2.0)
    parts = graded_parts(more, {more.id: solution[0].answer})
    record = judge(more, parts, sandbox=open_sandbox(), seed=3, show_speed=True)

    visible = sum(c.points for c in more.checks)
    assert (record.points, record.max_points) == (visible, visible)
    assert record.checks[-1].status is CheckStatus.NOT_ASSESSED
    assert record.speed.verdict is SpeedVerdict.SHOWN
    assert record.speed.pairs >= 9
    assert more.hidden_points == pytest.approx(EXERCISE.hidden_points)


def test_only_one_grading_measures_at_a_time():
    order = []

    def second():
        with one_at_a_time():
            order.append("second")

    thread = threading.Thread(target=second)
    with one_at_a_time():
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


@pytest.mark.parametrize("exercise_id", [e for e in all_exercises() if find(e).speed])
def test_speed_earns_a_quarter_to_two_fifths_of_the_points(exercise_id):
    exercise = find(exercise_id, hidden=True)
    counted = sum(c.points for c in exercise.checks if c.category == "counted cost")

    assert SPEED_SHARE[0] <= (counted + exercise.speed.points) / exercise.points <= SPEED_SHARE[1]
