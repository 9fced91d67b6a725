"""Points that a person gives in Formgrader reach gradebook, marks, class report and feedback, and outlive a new run."""

import copy
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader import outside_kernel
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import notebook_problems, release
from tests.autograder.classroom.nbgrader.test_cycle import FULL, FakeSandbox, grade_by_text

NAME, LOG = "17_capstone", "17_work_log"
SOURCE = Path(__file__).parents[4] / "notebooks" / NAME / f"{NAME}.ipynb"
WAITS = "24 points are for a person"


def cell_of(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name]
    return found


def hand_in(course: Course, student: str, text: str | None, *, deleted: bool = False) -> None:
    """Write a hand-in whose log is `text`, or as released if it is None."""
    notebook = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text())
    if text is not None:
        cell_of(notebook, LOG)["source"] = text
    if deleted:
        notebook["cells"].remove(cell_of(notebook, LOG))
    path = course.submitted / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Iterator[Course]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_WORK", str(tmp_path_factory.mktemp("work")))
        patch.setattr("autograder.classroom.hand_in.grade_answers", grade_by_text)
        patch.setattr(outside_kernel, "_open_once", lambda *_: FakeSandbox())
        course = open_course()
        release(course, [NAME])
        hand_in(course, "read", FULL)
        hand_in(course, "unread", f"{FULL} of another")
        hand_in(course, "untouched", None)
        hand_in(course, "deleted", None, deleted=True)
        yield course


def grade(course: Course) -> Graded:
    report = course.journal.parent / "report"
    return grade_course(course, [NAME], engine=LocalEngine(FakeSandbox(), 1), report=report)  # type: ignore[arg-type]


def of_student(graded: Graded, student: str) -> tuple[float, float]:
    """Return points and maximum of the log in the report's records."""
    (found,) = [e for r in graded.records if r.student == student for e in r.exercises if e.id == LOG]
    return found.points, found.max_points


def mark_of(graded: Graded, student: str) -> float:
    with graded.csv.open() as file:
        return next(float(row["score"]) for row in csv.DictReader(file) if row["student_id"] == student)


def waiting(graded: Graded) -> list[str]:
    """Return the students whose logs the report lists for a person."""
    lines = [line for line in graded.text.splitlines() if WAITS in line]
    return [name for line in lines for name in line.partition("]")[2].partition(" · ")[0].strip().split(", ")]


def test_a_score_entered_by_a_person_reaches_marks_report_and_feedback(course: Course) -> None:
    first = grade(course)
    with course.gradebook() as gradebook:
        needed = {s: find(gradebook, s).needs_manual_grade for s in ("read", "unread", "untouched", "deleted")}
    assert needed == {"read": True, "unread": True, "untouched": False, "deleted": False}
    assert [of_student(first, s) for s in ("read", "untouched", "deleted")] == [(6, 6), (0, 30), (0, 30)]
    assert waiting(first) == ["read", "unread"]
    assert mark_of(first, "read") == 6

    with course.gradebook() as gradebook:
        given = find(gradebook, "read")
        given.manual_score, given.needs_manual_grade = 17.5, False
        gradebook.find_comment(LOG, NAME, NAME, "read").manual_comment = "Say why the second one failed."
        gradebook.db.commit()
    second = grade(course)

    assert of_student(second, "read") == (23.5, 30)
    assert mark_of(second, "read") == 23.5
    assert waiting(second) == ["unread"]
    assert "read by a person" in second.page.read_text()
    page = (course.feedback / "read" / NAME / f"{NAME}.html").read_text()
    assert "Say why the second one failed." in page
    assert "17.5" in page

    hand_in(course, "read", f"{FULL} and more")
    third = grade(course)
    assert of_student(third, "read") == (23.5, 30), "what a person gave stays"
    assert waiting(third) == ["read", "unread"], "and the new log is listed again"


def find(gradebook: Gradebook, student: str) -> Any:
    return gradebook.find_grade(LOG, NAME, NAME, student)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"points": 12}, "is worth 12 points of a person, its exercise 24."),
        ({"grade": False}, "its flag 'grade' must be True."),
    ],
)
def test_a_cell_that_disagrees_with_its_exercise_is_not_released(change: dict[str, Any], says: str) -> None:
    notebook = copy.deepcopy(json.loads(SOURCE.read_text()))
    assert notebook_problems(notebook, NAME) == []
    cell_of(notebook, LOG)["metadata"]["nbgrader"] |= change
    assert any(says in problem for problem in notebook_problems(notebook, NAME))


def test_only_a_locked_text_may_stand_beside_the_cells_of_exercises() -> None:
    notebook = copy.deepcopy(json.loads(SOURCE.read_text()))
    rubric = cell_of(notebook, "work-log-rubric")
    assert notebook_problems(notebook, NAME) == []
    for flag in ("grade", "solution", "locked"):
        flags = rubric["metadata"]["nbgrader"]
        rubric["metadata"]["nbgrader"] = {**flags, flag: not flags[flag]}
        assert any("no exercise of 17_capstone has this id" in problem for problem in notebook_problems(notebook, NAME))
        rubric["metadata"]["nbgrader"] = flags
    rubric["cell_type"] = "code"
    assert any("no exercise of 17_capstone has this id" in problem for problem in notebook_problems(notebook, NAME))
