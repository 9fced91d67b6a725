"""An exercise with points for speed, through nbgrader on a machine that measures nothing.

Counted cost earns these points, the maximum is that of the cell, and feedback, report and CSV say what decided.
"""

import csv
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from autograder.classroom import exercise_versions
from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader import release as release_module
from autograder.classroom.nbgrader.course import open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.exercises import answer_cells, registry
from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.records import EarnedBy
from autograder.host.sandbox import open_sandbox
from tests.autograder.host.timed_exercise import HONEST, SETUP, SPEED

ROOT = Path(__file__).parents[4]
NAME, ANSWER, LESSON = "99_gates", "99_gate", "gates"
WRONG_FOR_ONE = "def gate(x, bias):\n    return F.silu(x + bias) * (2 if len(x) == 1 else 1)\n"


def gates(rows: int) -> Any:
    def run(answer: CallableAnswer, draw: Draw) -> None:
        x, bias = torch.linspace(-2, 2, rows * 8).view(rows, 8), torch.ones(8)
        (got,) = answer.call(Case((x, bias))).outputs
        if not torch.allclose(got, F.silu(x + bias)):
            raise CheckFailedError(f"{rows} rows came out wrong.")

    return run


EXERCISE = Exercise(
    id=ANSWER,
    title="Gate",
    kind=Kind.CALLABLE,
    entry_point="gate",
    points=10,
    checks=(
        Check("several rows", "rows", 4, gates(5)),
        Check("one row", "odd sizes", 2, gates(1)),
        Check("one launch", "counted cost", 4, gates(3), speed=True),
    ),
    setup=SETUP,
    speed=SPEED,
)


def cell(text: str, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": text, "metadata": metadata, "outputs": [], "execution_count": None}


def notebook(answer: str) -> dict[str, Any]:
    flags = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    marks = flags | {"grade_id": f"{ANSWER}_check", "grade": True, "locked": True, "points": 10}
    cells = [
        cell(SETUP, tags=["setup"]),
        cell(answer, nbgrader=flags | {"grade_id": ANSWER, "solution": True}),
        cell(release_module.check_source(EXERCISE), nbgrader=marks),
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


def module_name(exercise: str, *, hidden: bool = False) -> str:
    """Return the module of an exercise in a lesson that the course does not have."""
    return f"autograder.exercises.{'hidden.' if hidden else ''}{LESSON}.{exercise}"


def write(folder: Path, content: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text(json.dumps(content))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Graded:
    root = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    solution = HONEST.replace("    return", "    ### BEGIN SOLUTION\n    return") + "    ### END SOLUTION"
    write(root / "notebooks" / NAME, notebook(solution))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COURSE_WORK", raising=False)
        patch.delenv("COURSE_EXCHANGE", raising=False)
        for module in (registry, release_module, answer_cells, exercise_versions):
            patch.setattr(module, "all_exercises", lambda: (ANSWER,))
        for module in (registry, exercise_versions):
            patch.setattr(module, "module_name", module_name)
        patch.setattr(registry, "lesson_of", lambda _: LESSON)
        patch.setitem(SETUP_CELLS, LESSON, SETUP)
        patch.setitem(sys.modules, module_name(ANSWER), SimpleNamespace(EXERCISE=EXERCISE))
        course = open_course(root)
        assert release(course) == (NAME,)
        for student, text in {"right": HONEST, "half": WRONG_FOR_ONE, "open": ""}.items():
            write(course.submitted / student / NAME, notebook(text))
        return grade_course(course, engine=LocalEngine(open_sandbox()), report=root / "report")


def test_the_maximum_is_that_of_the_cell(graded: Graded) -> None:
    with graded.csv.open() as file:
        marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert graded.failures == ()
    assert marks == {"right": (10.0, 10.0), "half": (8.0, 10.0), "open": (0.0, 10.0)}


def test_the_record_says_that_counted_cost_decided(graded: Graded) -> None:
    (record,) = [record for record in graded.records if record.student == "half"]
    assert [check.by for check in record.exercises[0].checks] == [None, None, EarnedBy.COUNTED]
    assert record.exercises[0].speed is None


def test_student_and_instructor_are_told(graded: Graded) -> None:
    feedback = graded.csv.parent / "feedback" / "half" / NAME / f"{NAME}.html"
    with (graded.page.parent / "checks.csv").open() as file:
        rows = {(row["student"], row["check"]): row["speed"] for row in csv.DictReader(file)}
    assert "one launch<span" in feedback.read_text()
    assert "speed, counted" in feedback.read_text()
    assert "points for speed: counted in 2 answers" in graded.text
    assert (rows["half", "one launch"], rows["half", "one row"]) == ("counted", "")
