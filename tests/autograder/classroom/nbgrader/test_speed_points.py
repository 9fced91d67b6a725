"""An exercise whose points hang partly on measured speed, through nbgrader on a machine that has no CUDA.

nbgrader's maximum is fixed when a notebook is released, so what could be assessed here is scaled to it, and said to be.
"""

import csv
import dataclasses
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader import release as release_module
from autograder.classroom.nbgrader.course import open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.exercises import registry
from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.sandbox import open_sandbox
from tests.autograder.host.timed_exercise import HONEST, SETUP, SPEED

ROOT = Path(__file__).parents[4]
NAME, ANSWER, LESSON = "99_gates", "99_gate", "gates"
SPEED_POINTS = 4
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
    checks=(Check("several rows", "rows", 4, gates(5)), Check("one row", "odd sizes", 2, gates(1))),
    setup=SETUP,
    speed=dataclasses.replace(SPEED, points=SPEED_POINTS),
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
        for module in (registry, release_module, sys.modules["autograder.classroom.submission"]):
            patch.setattr(module, "all_exercises", lambda: (ANSWER,))
        patch.setattr(registry, "module_name", module_name)
        patch.setattr(registry, "lesson_of", lambda _: LESSON)
        patch.setitem(SETUP_CELLS, LESSON, SETUP)
        patch.setitem(sys.modules, module_name(ANSWER), SimpleNamespace(EXERCISE=EXERCISE))
        course = open_course(root)
        assert release(course) == (NAME,)
        for student, text in {"right": HONEST, "half": WRONG_FOR_ONE, "open": ""}.items():
            write(course.submitted / student / NAME, notebook(text))
        return grade_course(course, engine=LocalEngine(open_sandbox()), report=root / "report")


def test_what_was_assessed_is_scaled_to_the_points_of_the_cell(graded: Graded) -> None:
    with graded.csv.open() as file:
        marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert graded.failures == ()
    assert marks == {"right": (10.0, 10.0), "half": (pytest.approx(6.6667), 10.0), "open": (0.0, 10.0)}


def test_the_record_says_what_was_assessed(graded: Graded) -> None:
    (record,) = [record for record in graded.records if record.student == "half"]
    assert (record.points, record.max_points) == (4.0, 6.0)


def test_student_and_instructor_are_told(graded: Graded) -> None:
    feedback = graded.csv.parent / "feedback" / "half" / NAME / f"{NAME}.html"
    text = feedback.read_text()
    assert "6 of 10 points could be assessed here; what you earned of them was scaled to 10." in text
    assert "graded on a CUDA device only" in text
    assert "Not assessed here, left out of points and maximum: as fast as asked for." in graded.text
