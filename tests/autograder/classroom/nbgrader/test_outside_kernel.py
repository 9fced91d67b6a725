"""The mark that nbgrader reads is a built-in float from 0 to the cell's points, or an error of ours."""

import math
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell
from nbgrader.utils import determine_grade

from autograder.classroom.batch import Journal, JournalError, records_in
from autograder.classroom.nbgrader.outside_kernel import NotGradedError, mark_of, write_down, write_mark
from autograder.host.records import (
    WITHOUT_MARK,
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)


def exercise(points: float, most: float, status: ExerciseStatus = ExerciseStatus.GRADED) -> ExerciseRecord:
    check = CheckRecord("c", "c", False, CheckStatus.FAILED, 0.0, most, "<b>said</b>")
    return ExerciseRecord("05_x", "graph", points, most, status, "no GPU" if status == "grader_error" else "", (check,))


def check_cell(points: float = 12) -> object:
    metadata = {"grade": True, "solution": False, "locked": True, "points": points, "grade_id": "05_x_check"}
    return new_code_cell("check(...)", metadata={"nbgrader": metadata})


@pytest.mark.parametrize(
    ("points", "most", "mark"), [(0, 12, 0.0), (12, 12, 12.0), (5, 10, 6.0), (1, 3, 4.0), (10 + 1e-12, 10, 12.0)]
)
def test_nbgrader_reads_the_share_of_the_assessed_points(points: float, most: float, mark: float) -> None:
    cell = check_cell()
    write_mark(cell, exercise(points, most))
    assert determine_grade(cell) == (mark, 12.0)
    (output,) = cell.outputs
    assert output.data["text/plain"] == repr(mark)
    assert "&lt;b&gt;said" in output.data["text/html"]


def test_scaled_points_are_said_to_be_scaled() -> None:
    whole, part = check_cell(), check_cell()
    write_mark(whole, exercise(12, 12))
    write_mark(part, exercise(10, 10))
    assert "scaled" not in whole.outputs[0].data["text/html"]
    assert "10 of 12 points could be assessed here" in part.outputs[0].data["text/html"]


def test_an_error_of_ours_gives_no_mark() -> None:
    with pytest.raises(NotGradedError, match="no fault of the student"):
        mark_of(exercise(0, 0, ExerciseStatus.GRADER_ERROR), 12)
    with pytest.raises(NotGradedError, match="could be assessed"):
        mark_of(exercise(0, 0), 12)


@pytest.mark.parametrize("status", [s for s in ExerciseStatus if s not in WITHOUT_MARK])
def test_every_failure_of_the_student_gives_a_mark(status: ExerciseStatus) -> None:
    mark = mark_of(exercise(0, 12, status), 12)
    assert type(mark) is float
    assert math.isfinite(mark)


def submission(status: ExerciseStatus = ExerciseStatus.GRADED) -> SubmissionRecord:
    return SubmissionRecord("05_x", "s", "0", SandboxRecord(1), (exercise(0, 0, status),))


def test_only_a_result_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_down(submission(), path)
    write_down(submission(), path)
    with pytest.raises(NotGradedError, match="no GPU"):
        write_down(submission(ExerciseStatus.GRADER_ERROR), path)
    assert len(list(records_in(path))) == 1


def test_a_busy_journal_is_waited_for_and_not_bypassed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(JournalError, match="another grader"):
        write_down(submission(), path, wait_s=0.3)
