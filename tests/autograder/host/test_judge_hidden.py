"""How an answer ends in a hidden check is for instructors: an exit status could carry the case out to the student."""

import pytest

from autograder.exercises import find
from autograder.host.exercise import Check
from autograder.host.judge import _Grading
from autograder.host.records import ExerciseStatus
from autograder.host.report import exercise_html, exercise_text
from autograder.host.session import AnswerFailedError

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
