"""The limit of 60 % is announced where it holds, shown by the practice check as a condition, and said nowhere else."""

import json
from pathlib import Path

import pytest

from autograder.exercises import all_exercises, find
from autograder.host.report import exercise_html, exercise_text
from autograder.host.value_cap import CONDITION, is_limited
from tests.autograder.exercises.judged import judged, reference

COURSE = Path(__file__).parents[3]
SHARE = "05_common_subexpressions"
WORDS = "at most 60 %"
RETURNS_SOMETHING_ELSE = """
def share_equal(graph_module):
    output = next(iter(reversed(graph_module.graph.nodes)))
    output.args = (output.all_input_nodes[0].all_input_nodes[0],)
    return graph_module
"""


def texts():
    """Give the id and the text of each exercise, and the text of each other cell of the notebooks by its id."""
    found = {}
    for path in sorted((COURSE / "notebooks").glob("*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for before, cell in zip([None, *cells], cells, strict=False):
            found[cell["id"]] = "".join((before if cell["id"] in all_exercises() else cell)["source"])
    return found


def limited(exercise_id: str, *, hidden: bool) -> bool:
    exercise = find(exercise_id, hidden=hidden)
    return is_limited(exercise.kind, (check.category for check in exercise.checks))


def test_every_exercise_with_the_limit_says_so_and_no_other():
    said = texts()
    assert [each for each in all_exercises() if (WORDS in said[each]) != limited(each, hidden=True)] == []


def test_students_are_told_by_the_same_exercises_as_the_grader():
    # their installation has only visible checks, and the condition is read from the checks of the record
    assert [e for e in all_exercises() if limited(e, hidden=False) != limited(e, hidden=True)] == []


def test_the_first_notebook_tells_what_the_limit_is():
    said = texts()["graded-look"]
    assert WORDS in said
    assert "A typical mistake costs the points of one check" not in said


def shown(record) -> tuple[str, str]:
    return " ".join(exercise_text(record).split()), exercise_html(record)


@pytest.mark.parametrize(("hidden", "state"), [(False, "is open for those that grading adds"), (True, "It holds.")])
def test_a_report_shows_the_condition(hidden, state):
    record = judged(SHARE, reference(SHARE), hidden=hidden)
    for text in shown(record):
        assert CONDITION in text
        assert state in text


def test_no_report_speaks_of_a_limit_where_nothing_is_earned():
    record = judged(SHARE, RETURNS_SOMETHING_ELSE)
    assert record.points == 0
    for text in shown(record):
        assert "60 %" not in text


def test_an_exercise_without_the_limit_shows_no_condition():
    record = judged("04_custom_tracer", reference("04_custom_tracer"), hidden=False)
    assert record.points
    for text in shown(record):
        assert "60 %" not in text
