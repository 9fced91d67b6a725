"""Right answers are tried with many seeds, and one that loses a point is named with its seed."""

import sys

import pytest

from autograder.host.exercise import REFERENCE
from autograder.host.sandbox import open_sandbox
from benchmarks.grading import full_marks
from tests.autograder.exercises.judged import reference

EXERCISE = "04_read_a_graph"


def test_the_reference_is_a_right_answer_and_none_with_fewer_points_is() -> None:
    right = full_marks.right_answers(EXERCISE)

    assert REFERENCE in {control.name for control in right}
    assert {control.marks for control in right} == {full_marks.find(EXERCISE).points}


def test_a_right_answer_is_graded_with_each_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["full_marks", "--exercises", EXERCISE, "--seeds", "2"])
    count = len(full_marks.right_answers(EXERCISE))

    assert full_marks.main() == 0
    assert f"2 seeds each: {2 * count} times graded" in capsys.readouterr().out


def test_what_loses_points_is_named_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = full_marks.Control(
        "half right", reference(EXERCISE).replace("=", "= 1 +", 1), full_marks.find(EXERCISE).points
    )
    monkeypatch.setattr(full_marks, "right_answers", lambda exercise: [wrong])
    monkeypatch.setattr(sys, "argv", ["full_marks", "--exercises", EXERCISE, "--seeds", "1"])

    assert full_marks.main() == 1
    assert f"{EXERCISE}, half right, seed 0: " in capsys.readouterr().out


def test_no_point_is_lost_where_all_checks_pass() -> None:
    (control, *_) = full_marks.right_answers(EXERCISE)

    found = full_marks.marked(EXERCISE, control, 0, open_sandbox())

    assert (found.points, found.told) == (found.of, "")
