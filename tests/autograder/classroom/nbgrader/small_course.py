"""A released and graded course of two students, copied for each test, with the grader of `test_cycle`."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader import outside_kernel
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from tests.autograder.classroom.nbgrader.test_cycle import (
    FULL,
    NAME,
    FakeSandbox,
    grade_by_text,
    gradebook_of,
    hand_in,
    shorten,
    with_answer,
)

DUE = "2026-01-15 12:00:00 UTC"


def graded(course: Course) -> Graded:
    report = course.journal.parent / "report"
    return grade_course(course, [NAME], engine=LocalEngine(FakeSandbox(), 1), report=report)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Iterator[Path]:
    """Where the course lies that tests get copies of: ada has full marks, bob none, both handed in when it was due."""
    with pytest.MonkeyPatch.context() as patch:
        work = tmp_path_factory.mktemp("work")
        patch.setenv("COURSE_WORK", str(work))
        patch.setattr("autograder.classroom.hand_in.grade_answers", grade_by_text)
        patch.setattr(outside_kernel, "_open_once", lambda *_: FakeSandbox())
        course = open_course()
        release(course, [NAME])
        released = shorten(course.release / NAME / f"{NAME}.ipynb")
        for student, text in (("ada", FULL), ("bob", "")):
            (hand_in(course, student, with_answer(json.loads(released), text)) / "timestamp.txt").write_text(DUE)
        with gradebook_of(course) as gradebook:
            gradebook.update_or_create_assignment(NAME, duedate=DUE)
        graded(course)
        yield work


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each copy lies: the address of its gradebook is one, so its statements stay compiled."""
    return tmp_path_factory.mktemp("copy") / "work"


@pytest.fixture
def course(base: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Course]:
    shutil.copytree(base, place)
    monkeypatch.setenv("COURSE_WORK", str(place))
    yield open_course()
    shutil.rmtree(place)
