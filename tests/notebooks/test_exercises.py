"""Notebooks and exercises fit together: same ids, same points, and the set-up that an answer may rely on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from autograder.exercises import all_exercises, find, of_assignment
from autograder.host.setup_imports import imports

COURSE = Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in sorted((COURSE / "notebooks").glob("*/*.ipynb"))}

each_exercise = pytest.mark.parametrize("exercise", all_exercises())


def cells_of(exercise: str) -> list[dict[str, Any]]:
    """The cells of the notebook that the exercise belongs to."""
    (path,) = [path for name, path in NOTEBOOKS.items() if exercise in of_assignment(name)]
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def cell(exercise: str, name: str) -> dict[str, Any]:
    (found,) = [cell for cell in cells_of(exercise) if cell["id"] == name]
    return found


def test_every_graded_cell_belongs_to_an_exercise() -> None:
    graded = {
        cell["id"].removesuffix("_check")
        for path in NOTEBOOKS.values()
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "nbgrader" in cell["metadata"]
    }
    assert graded == set(all_exercises())


@each_exercise
def test_the_answer_cell_defines_the_entry_point(exercise: str) -> None:
    entry_point = find(exercise).entry_point
    assert re.search(rf"^(def|class) {entry_point}\(", "".join(cell(exercise, exercise)["source"]), flags=re.MULTILINE)


@each_exercise
def test_the_check_hands_over_the_entry_point(exercise: str) -> None:
    last = "".join(cell(exercise, f"{exercise}_check")["source"]).splitlines()[-1]
    assert last == f'check("{exercise}", {find(exercise).entry_point})'


@each_exercise
def test_the_points_are_those_of_the_cell_and_of_the_text(exercise: str) -> None:
    points, cells = find(exercise).points, cells_of(exercise)
    assert cell(exercise, f"{exercise}_check")["metadata"]["nbgrader"]["points"] == points
    task = cells[[c["id"] for c in cells].index(exercise) - 1]
    assert f"**{points:g} points**" in "".join(task["source"])


@each_exercise
def test_an_answer_may_use_what_the_set_up_cell_imports(exercise: str) -> None:
    (setup,) = [c for c in cells_of(exercise) if "setup" in c["metadata"].get("tags", [])]
    assert imports(find(exercise).setup) == imports("".join(setup["source"]))
