"""Notebooks and exercises fit together: same ids, same points, and the set-up that an answer may rely on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from autograder.exercises import all_exercises, find, of_assignment
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import Exercise
from autograder.host.setup_imports import imports

COURSE = Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in sorted((COURSE / "notebooks").glob("*/*.ipynb"))}

TIMED = [each for each in all_exercises() if find(each).speed is not None]

each_exercise = pytest.mark.parametrize("exercise", all_exercises())


def cells_of(exercise: str) -> list[dict[str, Any]]:
    """The cells of the notebook that the exercise belongs to."""
    (path,) = [path for name, path in NOTEBOOKS.items() if exercise in of_assignment(name)]
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def cell(exercise: str, name: str) -> dict[str, Any]:
    (found,) = [cell for cell in cells_of(exercise) if cell["id"] == name]
    return found


def task_of(exercise: str) -> str:
    """The text of the exercise, which stands before its answer."""
    cells = cells_of(exercise)
    return "".join(cells[[c["id"] for c in cells].index(exercise) - 1]["source"])


def test_every_graded_cell_belongs_to_an_exercise() -> None:
    graded = {
        cell["id"].removesuffix("_check")
        for path in NOTEBOOKS.values()
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if any(cell["metadata"].get("nbgrader", {}).get(flag) for flag in ("grade", "solution"))
    }
    assert graded == set(all_exercises())


def test_the_exercises_have_all_the_points_that_the_readme_says() -> None:
    exercises = [find(each) for each in all_exercises()]
    (said,) = re.findall(r"graded exercises, ([\d,]+) points", (COURSE / "README.md").read_text(encoding="utf-8"))
    assert int(said.replace(",", "")) == 1000
    assert sum(each.points + each.by_hand for each in exercises) >= 1000  # more where somebody adds an exercise


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
    points = find(exercise).points
    assert cell(exercise, f"{exercise}_check")["metadata"]["nbgrader"]["points"] == points
    assert f"**{points:g} points**" in task_of(exercise)


@pytest.mark.parametrize("exercise", [each for each in all_exercises() if find(each).by_hand])
def test_the_points_of_a_person_are_those_of_cell_text_and_rubric(exercise: str) -> None:
    points = find(exercise).by_hand
    assert cell(exercise, exercise)["metadata"]["nbgrader"]["points"] == points
    assert f"**{points:g} points** by a person" in task_of(exercise)
    cells = cells_of(exercise)
    rubric = "".join(cells[[c["id"] for c in cells].index(exercise) - 2]["source"])
    rows, (most,) = (
        re.findall(r"^\| \w[\w ]* \|", rubric, re.MULTILINE)[1:],
        re.findall(r"0, 2 or (\d+) points", rubric),
    )
    assert len(rows) * int(most) == points


def who_decides(exercise: Exercise) -> str:
    """The words for where the ratio of times earns the points for speed."""
    assert exercise.speed is not None
    if not exercise.speed.on("cpu").shown_only:
        return "the ratio of times earns them where the grading machine measures, counted cost elsewhere."
    if not exercise.speed.on("cuda").shown_only:
        return "the ratio of times earns them on a GPU that measures, counted cost elsewhere."
    return "counted bytes earn them on every machine. The ratio of times is only shown."


@pytest.mark.parametrize("exercise", TIMED)
def test_the_task_says_how_many_points_are_for_speed_and_where_times_earn_them(exercise: str) -> None:
    hidden = hidden_part(exercise)
    assert hidden is not None
    points = sum(check.points for check in (*find(exercise).checks, *hidden.checks) if check.speed)
    task = " ".join(task_of(exercise).split())
    assert f"**{points:g} of these points are for speed" in task
    assert who_decides(find(exercise)) in task


def test_no_other_task_speaks_of_points_for_speed() -> None:
    assert [each for each in all_exercises() if each not in TIMED and "for speed" in task_of(each)] == []


@each_exercise
def test_an_answer_may_use_what_the_set_up_cell_imports(exercise: str) -> None:
    (setup,) = [c for c in cells_of(exercise) if "setup" in c["metadata"].get("tags", [])]
    assert imports(find(exercise).setup) == imports("".join(setup["source"]))
