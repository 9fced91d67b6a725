"""Hostile notebooks fool those who believe a notebook, and get nothing in nbgrader's whole cycle with our judge."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import grade_course
from autograder.classroom.nbgrader.release import release
from autograder.classroom.pages import filters
from autograder.exercises.quality.controls import controls
from tests.autograder.classroom.pages.page_scan import loaded_or_run, pages_that_load_or_run
from tests.autograder.host.hostile.catalogue import Attack, attacks
from tests.autograder.host.hostile.levels import opened

NAME, ANSWER = "04_fx_capture", "04_read_a_graph"
NOTEBOOKS = attacks("notebook")
HONEST = next(c.answer for c in controls(ANSWER) if c.name == "reference")
MAX_NOTEBOOK_BYTES, MAX_PAGE_CHARACTERS = 2 << 20, 4 << 20  # of what an instructor opens


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


def faults_of_what_is_opened(course: Course, student: str) -> list[str]:
    """What an instructor opens that is too large, and what a page loads or runs."""
    notebook = course.autograded / student / NAME / f"{NAME}.ipynb"
    page = (course.feedback / student / NAME / f"{NAME}.html").read_text()
    large = (notebook.stat().st_size > MAX_NOTEBOOK_BYTES, len(page) > MAX_PAGE_CHARACTERS)
    names = [name for name, is_large in zip(("large notebook", "large page"), large, strict=True) if is_large]
    return [*names, *loaded_or_run(page)]


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_gradebooks: None) -> Course:
    """A class of every hostile notebook, with an honest one before and one behind them."""
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(filters, "PAGE_CPU_S", 1.0)  # one of the notebooks uses up whatever it is
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
    return course


# One test, since processes that share tests out would each grade the class anew.
def test_hostile_notebooks_get_nothing_change_nobodys_mark_and_open_small_and_without_markup(
    course: Course, tmp_path: Path
) -> None:
    result = grade_course(course, [NAME], engine=LocalEngine(opened("auto"), 2), report=tmp_path / "report")
    with result.csv.open() as file:
        marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    opened_with = {attack.path.stem: faults_of_what_is_opened(course, attack.path.stem) for attack in NOTEBOOKS}

    assert result.failures == ()
    assert pages_that_load_or_run(tmp_path) == {}
    assert marks == {attack.path.stem: attack.most for attack in NOTEBOOKS} | {"a_honest": 6.0, "z_honest": 6.0}
    assert {student: faults for student, faults in opened_with.items() if faults} == {}
