"""Answers of known marks are files: each is used, edits of the reference are checked, and the notebook agrees."""

import ast
import json
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.markers import BEGIN, END
from autograder.exercises import all_exercises
from autograder.exercises.hidden.answer_files import FOLDER, UnknownEditError, edited, sections
from autograder.exercises.lessons import module_name
from autograder.exercises.registry import hidden_part
from tests.autograder.exercises.judged import reference

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def solutions() -> dict[str, str]:
    """Return the answer cell of every exercise by its id, with the solution."""
    notebooks = (json.loads(path.read_text("utf-8")) for path in NOTEBOOKS.glob("*/*.ipynb"))
    cells = (cell for notebook in notebooks for cell in notebook["cells"] if BEGIN in "".join(cell["source"]))
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def reference_file(exercise: str) -> Path:
    """Return the file of an exercise's reference solution."""
    lesson, name = module_name(exercise).split(".")[-2:]
    return FOLDER / lesson / f"{name}.py"


def same(one: str, other: str) -> bool:
    """Return whether two programs have the same syntax tree."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


SOLUTIONS = solutions()


@pytest.mark.parametrize("exercise", all_exercises())
def test_the_solution_in_the_notebook_is_the_reference(exercise):
    assert same(SOLUTIONS[exercise], reference_file(exercise).read_text("utf-8"))


@pytest.mark.parametrize("exercise", all_exercises())
def test_a_changed_solution_is_not_the_reference(exercise):
    """A statement more is seen; comments in place of the markers are not."""
    lines = SOLUTIONS[exercise].split("\n")
    first = next(number for number, line in enumerate(lines) if line.strip() == BEGIN)
    changed = [*lines[: first + 1], lines[first + 1][: -len(lines[first + 1].lstrip())] + "x = 1", *lines[first + 1 :]]
    formatted = [line.replace(BEGIN, "").replace(END, "# the end") for line in lines]

    assert not same("\n".join(changed), reference_file(exercise).read_text("utf-8"))
    assert same("\n".join(formatted), reference_file(exercise).read_text("utf-8"))


def test_every_answer_file_is_the_answer_of_a_control():
    parts = [hidden_part(exercise) for exercise in all_exercises()]
    answers = {control.answer for part in parts for control in part.controls}
    files = [(path, name, text) for path in FOLDER.rglob("*.py") for name, text in sections(path.read_text("utf-8"))]

    assert len(files) > len(parts)
    assert [
        each[:2]
        for each in files
        if not any(answer.endswith(each[2]) or answer.startswith(each[2]) for answer in answers)
    ] == []


@pytest.mark.parametrize("exercise", ["01_bert_layer", "06_schedule_encoder"])
def test_a_reference_begins_with_those_of_the_exercises_that_it_uses(exercise):
    text, own = reference(exercise), reference_file(exercise).read_text("utf-8")

    assert text.endswith(own)
    assert len(text) > 1.5 * len(own)


def test_an_edit_does_not_depend_on_the_format_of_the_answer():
    for answer in (
        'def f(x):\n    return g( x["a"],   1 )  # a call\n',
        "def f(x):\n    return g(\n        x['a'],\n        1,\n    )\n",
    ):
        assert edited(answer, ("x['a'], 1", "x['b'], 2")) == "def f(x):\n    return g(x['b'], 2)\n"


@pytest.mark.parametrize("text", ["x + 2", "x"])
def test_an_edit_of_what_is_not_there_once_is_refused(text):
    with pytest.raises(UnknownEditError, match=rf"'{text}' occurs \d times, not once".replace("+", r"\+")):
        edited("def f(x):\n    return x + 1\n", (text, "0"))
