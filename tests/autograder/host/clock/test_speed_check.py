"""Points for speed: earned by the measured ratio where the device measures, and by counted cost everywhere else."""

import copy
import dataclasses
import threading
from types import SimpleNamespace

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.clock import speed_check
from autograder.host.clock.contest import one_at_a_time
from autograder.host.clock.speed_check import Timed
from autograder.host.clock.trial import WrongTimedOutputError
from autograder.host.compute_lock import compute_lock
from autograder.host.exercise import Check
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    CountedCost,
    EarnedBy,
    ExerciseStatus,
    SpeedRecord,
    SpeedVerdict,
)
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError
from course_lib.timing import Verdict

EXERCISE = find("05_bias_silu_pass")
COUNTED = Check("launches", "counted cost", 2.0, lambda *_: None, speed=True)
OTHER = dataclasses.replace(COUNTED, name="values", speed=False)
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


def counted(share: float, check: Check = COUNTED) -> CheckRecord:
    """What counting gave before anything was measured."""
    status = CheckStatus.PASSED if share == 1 else CheckStatus.FAILED
    message = "" if share == 1 else "3 launches; 1 is enough."
    return CheckRecord(check.name, check.category, False, status, share * check.points, check.points, message)


def timed(monkeypatch, outcome, *, measures=True, right=True, shown=False, rebuilt=True, baseline=True):
    """Return the result of the judge's last step when measuring gives `outcome`."""

    def act(of):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def control(pairs):
        if not baseline:
            raise AnswerFailedError(ExerciseStatus.TIMED_OUT, "The baseline, too.", fatal=True)

    of = SimpleNamespace(artifact="graph" if rebuilt else None, control=control)
    monkeypatch.setattr(speed_check, "_contest", lambda *args: of)
    monkeypatch.setattr(speed_check, "measure", act)
    monkeypatch.setattr(speed_check, "show", act)
    sandbox = SimpleNamespace(measures=measures, has_cuda=False)
    return speed_check.time_answer(EXERCISE, None, {}, sandbox=sandbox, seed=1, shown=shown, right=right)


def assessed(least, most, *, suspicious=False):
    """A measurement that proved that the share lies in between."""
    passing, full = SimpleNamespace(reason=RECORD.reason), SimpleNamespace(reason="1.65 was asked for all.")
    verdict = Verdict.PASS if least else Verdict.FAIL
    return RECORD, SimpleNamespace(
        least=least, most=most, suspicious=suspicious, verdict=verdict, passing=passing, full=full
    )


@pytest.mark.parametrize(
    ("bounds", "counts", "points", "by"),
    [
        ((1.0, 1.0), 0.0, 2.0, "measured"),
        ((0.6, 0.6), 1.0, 1.2, "measured"),
        ((0.0, 0.0), 1.0, 0.0, "measured"),
        ((0.0, 1.0), 1.0, 2.0, "counted"),
        ((0.0, 1.0), 0.25, 0.5, "counted"),
        ((0.6, 1.0), 1.0, 2.0, "counted"),
        ((0.6, 1.0), 0.25, 1.2, "measured"),
    ],
)
def test_the_verdict_decides_as_far_as_it_goes_and_counted_cost_the_rest(monkeypatch, bounds, counts, points, by):
    found = timed(monkeypatch, assessed(*bounds)).decided(COUNTED, counted(counts))

    assert (found.points, found.max_points, str(found.by)) == (points, 2.0, by)
    assert (found.status is CheckStatus.PASSED) == (points == 2.0)
    missing = by == "measured" and points < 2.0
    assert ("1.10 times as fast" in found.message) == (missing and not bounds[0])
    assert ("1.65 was asked for all" in found.message) == (missing and bounds[0] > 0)


def test_a_check_that_is_not_for_speed_stays_as_it_was(monkeypatch):
    was = counted(0.5, OTHER)

    assert timed(monkeypatch, assessed(1.0, 1.0)).decided(OTHER, was) is was


def test_where_nothing_measures_counted_cost_earns_the_points_and_the_record_says_so(monkeypatch):
    found = timed(monkeypatch, AssertionError("measured"), measures=False)

    assert found == Timed()
    assert found.decided(COUNTED, counted(1.0)) == dataclasses.replace(counted(1.0), by=EarnedBy.COUNTED)
    assert timed(monkeypatch, RECORD, measures=False, shown=True) == Timed(RECORD)


@pytest.mark.parametrize(
    "outcome",
    [
        WrongTimedOutputError("In a timed call it is wrong."),
        AnswerFailedError(ExerciseStatus.TIMED_OUT, "Too long.", fatal=True),
    ],
)
def test_an_answer_that_cannot_be_timed_loses_its_points_for_speed_only_where_they_are_measured(monkeypatch, outcome):
    found = timed(monkeypatch, outcome).decided(COUNTED, counted(1.0))

    assert (found.status, found.points, found.by) == (CheckStatus.FAILED, 0.0, EarnedBy.MEASURED)
    assert found.message == str(outcome)
    assert timed(monkeypatch, outcome, measures=False, shown=True) == Timed()


def test_a_machine_that_cannot_time_the_baseline_either_costs_nothing(monkeypatch):
    slow = AnswerFailedError(ExerciseStatus.TIMED_OUT, "Too long.", fatal=True)

    assert timed(monkeypatch, slow, baseline=False) == Timed()


def test_counted_cost_decides_on_every_machine_where_it_knows_more_than_the_clock(monkeypatch):
    inductor = dataclasses.replace(EXERCISE, speed=find("09_reach_byte_minimum").speed)
    monkeypatch.setattr("tests.autograder.host.clock.test_speed_check.EXERCISE", inductor)

    assert timed(monkeypatch, RECORD, shown=True) == Timed(RECORD)
    assert timed(monkeypatch, AssertionError("measured")) == Timed()


def test_wrong_results_are_not_timed(monkeypatch):
    assert timed(monkeypatch, AssertionError("measured"), right=False) == Timed()


def test_a_ratio_beyond_the_roofline_waits_for_a_person(monkeypatch):
    outcome = assessed(1.0, 1.0, suspicious=True)

    open_ = timed(monkeypatch, outcome, rebuilt=False).decided(COUNTED, counted(1.0))
    assert (open_.points, open_.by) == (0.0, EarnedBy.MEASURED)
    assert speed_check.REVIEW in open_.message


AS_MUCH, LESS = CountedCost(2, 400), CountedCost(1, 200)


@pytest.mark.parametrize(("cost", "points"), [(AS_MUCH, 0.0), (CountedCost(3, 500), 0.0), (LESS, 2.0), (None, 2.0)])
def test_an_undecided_ratio_leaves_the_counts_only_to_a_graph_that_costs_less_than_the_program(
    monkeypatch, cost, points
):
    _, undecided = assessed(0.0, 1.0)
    record = dataclasses.replace(RECORD, answer_cost=cost, baseline_cost=AS_MUCH)
    found = timed(monkeypatch, (record, undecided)).decided(COUNTED, counted(1.0))

    assert found.points == points
    assert (speed_check.AS_COSTLY in found.message) == (points == 0.0)


def test_an_unasked_message_is_a_malformed_answer_not_a_matter_of_speed(monkeypatch):
    with pytest.raises(AnswerFailedError):
        timed(monkeypatch, AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, "twice", fatal=True))


@pytest.mark.parametrize("measured", [False, True])
def test_the_maximum_is_the_same_whether_speed_is_measured_or_counted(monkeypatch, measured):
    monkeypatch.setattr(speed_check, "measure", lambda of: assessed(0.6, 0.6))
    monkeypatch.setattr(speed_check, "show", lambda of: dataclasses.replace(RECORD, verdict="shown"))
    sandbox = copy.copy(open_sandbox())
    sandbox.measures_on_cpu = measured
    plain = min((c for c in EXERCISE.checks if not c.speed), key=lambda check: check.points)
    fast = sum(c.points for c in EXERCISE.checks if c.speed)
    exercise = dataclasses.replace(EXERCISE, checks=(plain, *(c for c in EXERCISE.checks if c.speed)))
    parts = graded_parts(exercise, {exercise.id: controls(exercise.id)[0].answer})
    record = judge(exercise, parts, sandbox=sandbox, seed=3, show_speed=True)

    most = plain.points + fast
    assert (record.points, record.max_points) == ((plain.points + 0.6 * fast) if measured else most, most)
    assert [c.by for c in record.checks] == [None, EarnedBy.MEASURED if measured else EarnedBy.COUNTED]
    assert record.speed.verdict is (SpeedVerdict.FAIL if measured else SpeedVerdict.SHOWN)


def test_only_one_grading_measures_at_a_time_and_who_waits_lets_it_compute():
    order = []

    def second():
        with compute_lock.held(), one_at_a_time():
            order.append("second")

    thread = threading.Thread(target=second)
    with one_at_a_time():
        thread.start()
        thread.join(0.1)
        with compute_lock.held():
            order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


@pytest.mark.parametrize("exercise_id", [e for e in all_exercises() if find(e).speed])
def test_speed_earns_a_quarter_to_two_fifths_of_the_points(exercise_id):
    exercise = find(exercise_id, hidden=True)
    share = sum(c.points for c in exercise.checks if c.speed) / exercise.points

    assert 0.25 <= round(share, 9) <= 0.40
    assert all(c.speed for c in exercise.checks if c.category == "counted cost")


def test_every_check_for_speed_belongs_to_an_exercise_that_can_be_timed():
    assert all(find(e).speed for e in all_exercises() if any(c.speed for c in find(e, hidden=True).checks))
