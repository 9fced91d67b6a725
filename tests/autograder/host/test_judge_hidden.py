"""What a student is shown says nothing of hidden checks: neither how an answer ends in them, nor what they count.

An exit status, or a number that the answer itself brings about, could carry the case out. And an end in a hidden check
is not worth more than a wrong result there.
"""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from autograder.exercises import find
from autograder.host.exercise import AnswerRefusedError, Check, CheckFailedError
from autograder.host.judge import NOT_RUN, _Grading
from autograder.host.records import ExerciseStatus
from autograder.host.report import exercise_html, exercise_text
from autograder.host.session import AnswerFailedError
from autograder.host.value_cap import ENDED

SECRET = "ended with status 127"


def ending(*_: object) -> None:
    raise AnswerFailedError(ExerciseStatus.KILLED, SECRET, fatal=True)


@pytest.mark.parametrize("hidden", [True, False])
def test_the_student_learns_how_it_ended_only_from_checks_that_are_seen(hidden: bool) -> None:
    grading = _Grading(find("04_read_a_graph"), seed=1)
    grading.run(Check("first", "seen", 1, lambda *_: None), None)
    grading.run(Check("second", "cases you have not seen", 1, ending, hidden=hidden), None)
    grading.run(Check("third", "cases you have not seen", 1, lambda *_: None, hidden=True), None)
    record = grading.record({})
    assert (record.points, record.status) == (1, ExerciseStatus.KILLED)
    for shown in (exercise_html(record), exercise_text(record)):
        assert (SECRET in shown) != hidden
    assert SECRET in exercise_html(record, show_hidden=True)


def test_the_student_sees_the_counts_of_seen_checks_only() -> None:
    grading, answer = _Grading(find("05_bias_silu_pass"), seed=1), SimpleNamespace(counted={})

    def counting(moved: int) -> Callable[..., None]:
        def run(*_: object) -> None:
            answer.counted.update(bytes_moved=moved)
            answer.counted |= {f"rows_{moved}": moved}
            if moved == 4128:
                raise CheckFailedError("too many")

        return run

    for moved, hidden in ((288, False), (4128, True), (4129, True)):
        grading.run(Check(f"of {moved}", "counted cost", 1, counting(moved), hidden=hidden), answer)
    record = grading.record(answer.counted)

    assert record.counted == {"bytes_moved": 288, "rows_288": 288}
    assert record.points == 2
    for shown in (exercise_html(record), exercise_text(record)):
        assert "288" in shown
        assert "4128" not in shown.replace(",", "")
        assert "4129" not in shown.replace(",", "")


@pytest.mark.parametrize(("category", "points"), [("gradients", 6), ("idiom", 9)])
def test_a_pass_that_ends_before_its_results_are_compared_earns_no_more_than_a_wrong_one(category, points) -> None:
    grading = _Grading(find("05_bias_silu_pass"), seed=1)
    grading.run(Check("first", "counted cost", 9, lambda *_: None), None)
    grading.run(Check("second", category, 1, ending, hidden=True), None)
    record = grading.record({})

    assert record.points == points
    assert record.cap.startswith(f"{ENDED} (a hidden check of gradients)" if points == 6 else "")
    assert bool(record.cap) == (points == 6)


@pytest.mark.parametrize("first_passes", [True, False])
def test_a_cell_of_which_every_check_meets_a_stub_is_not_answered_yet(first_passes: bool) -> None:
    def stub(*_: object) -> None:
        raise AnswerFailedError(ExerciseStatus.STUDENT_ERROR, "Not answered yet.", fatal=False, unanswered=True)

    grading = _Grading(find("04_read_a_graph"), seed=1)
    grading.run(Check("first", "seen", 1, (lambda *_: None) if first_passes else stub), None)
    grading.run(Check("second", "seen", 1, stub), None)

    assert grading.record({}).status is (ExerciseStatus.GRADED if first_passes else ExerciseStatus.NOT_FOUND)


def test_a_refused_answer_says_why_once_and_runs_no_further_check() -> None:
    def refusing(*_: object) -> None:
        raise AnswerRefusedError("Line 3 uses `print`.")

    def never(*_: object) -> None:
        raise AssertionError("a check ran after the answer was refused")

    grading = _Grading(find("12_layer_norm"), seed=1)
    for name, run in (("first", refusing), ("second", never), ("third", never)):
        grading.run(Check(name, "seen", 1, run), None)

    told = [check.message for check in grading.record({}).checks]
    assert told == ["Line 3 uses `print`.", NOT_RUN, NOT_RUN]


def test_checks_after_the_end_of_an_answer_do_not_repeat_why_it_ended() -> None:
    def ending(*_: object) -> None:
        raise AnswerFailedError(ExerciseStatus.KILLED, "It ended its own process.", fatal=True)

    grading = _Grading(find("04_read_a_graph"), seed=1)
    for name in ("first", "second"):
        grading.run(Check(name, "seen", 1, ending), None)

    record = grading.record({})
    assert record.message == record.checks[0].message == "It ended its own process."
    assert record.checks[1].message == NOT_RUN
