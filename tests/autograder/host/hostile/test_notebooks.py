"""Hostile notebooks fool those who believe a notebook, and get nothing in nbgrader's whole cycle with our judge."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autograder.host.batch import LocalEngine
from autograder.host.exercises.registry import controls
from autograder.host.nbgrader.course import Course, open_course
from autograder.host.nbgrader.grade import Graded, grade_course
from autograder.host.nbgrader.release import release
from tests.autograder.host.hostile.catalogue import Attack, attacks
from tests.autograder.host.hostile.levels import opened

NAME, ANSWER = "04_fx_capture", "04_read_a_graph"
NOTEBOOKS = attacks("notebook")
HONEST = next(c.answer for c in controls(ANSWER) if c.name == "reference")


def change_of(attack: Attack) -> Callable[[dict[str, Any]], bytes | None]:
    """The function `change` of a hostile file, which is ours and harmless: it only edits a notebook."""
    namespace: dict[str, Any] = {}
    exec(compile(attack.path.read_text(), str(attack.path), "exec"), namespace)
    change: Callable[[dict[str, Any]], bytes | None] = namespace["change"]
    return change


def without_its_text(released: str) -> str:
    """A notebook without the cells that nbgrader does not look at, which it would show as a page for each student."""
    notebook = json.loads(released)
    notebook["cells"] = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    return json.dumps(notebook)


def hand_in(course: Course, student: str, content: bytes) -> None:
    folder = course.submitted / student / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_bytes(content)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Iterator[tuple[Course, Graded]]:
    """A class of every hostile notebook, with an honest one before and one behind them."""
    patch = pytest.MonkeyPatch()
    patch.setenv("COURSE_WORK", str(tmp_path_factory.mktemp("work")))
    patch.setenv("PATH", os.defpath)
    course = open_course()
    release(course, [NAME])
    released = without_its_text((course.release / NAME / f"{NAME}.ipynb").read_text())
    honest = json.loads(released)
    for cell in honest["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER:
            cell["source"] = HONEST
    for student in ("a_honest", "z_honest"):
        hand_in(course, student, json.dumps(honest).encode())
    for attack in NOTEBOOKS:
        notebook = json.loads(released)
        changed = change_of(attack)(notebook)
        hand_in(course, attack.path.stem, changed or json.dumps(notebook).encode())
    report = tmp_path_factory.mktemp("report")
    yield course, grade_course(course, [NAME], engine=LocalEngine(opened("auto"), 2), report=report)
    patch.undo()


def test_a_hostile_notebook_gets_nothing_and_nobody_elses_mark_changes(graded: tuple[Course, Graded]) -> None:
    _course, result = graded
    with result.csv.open() as file:
        marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}

    assert result.failures == ()
    assert marks == {attack.path.stem: attack.most for attack in NOTEBOOKS} | {"a_honest": 6.0, "z_honest": 6.0}


@pytest.mark.parametrize("attack", NOTEBOOKS, ids=lambda attack: attack.path.stem)
def test_what_the_instructor_opens_is_small_and_holds_no_markup_of_a_student(
    graded: tuple[Course, Graded], attack: Attack
) -> None:
    course, _ = graded
    for path in (course.autograded / attack.path.stem / NAME).glob("*.ipynb"):
        assert path.stat().st_size < 2 << 20
    page = (course.feedback / attack.path.stem / NAME / f"{NAME}.html").read_text()
    assert len(page) < 4 << 20
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "javascript:alert" not in page
