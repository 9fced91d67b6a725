"""What the README tells a newcomer to type is there, and its example of an exercise is one."""

import re
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError, Exercise, HiddenPart
from scripts import draw_picture
from tests.architecture.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


class Answer:
    """Stands in for the student's function, without a worker."""

    def __init__(self, function):
        self.ask = function


@pytest.fixture
def example(tmp_path, monkeypatch) -> tuple[Exercise, HiddenPart]:
    """Return the exercise of the README's first block of Python, and the hidden part of its second."""
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for name, block in zip(("visible", "twin"), blocks, strict=False):
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    name = "autograder.exercises.04_count_nodes"
    visible = runpy.run_path(str(tmp_path / "visible.py"))
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**visible))
    return visible["EXERCISE"], runpy.run_path(str(tmp_path / "twin.py"))["HIDDEN"]


def test_every_target_that_the_readme_names_exists():
    named = set(re.findall(r"`?make ([a-z-]+)(?:`|  )", README))

    assert {"demo", "test"} <= named
    assert [target for target in named if f"\n{target}:" not in MAKEFILE] == []


def test_every_link_and_picture_exists():
    assert [path for path in re.findall(r"\]\(([^)#:]+)\)", README) if not (ROOT / path).exists()] == []


def test_the_picture_is_what_the_script_draws():
    assert draw_picture.picture() == (ROOT / "docs" / "picture.svg").read_text(encoding="utf-8")


def test_the_example_is_an_exercise_whose_points_add_up(example):
    exercise, hidden = example

    assert exercise.points == sum(check.points for check in exercise.checks + hidden.checks)
    assert f'check("{exercise.id}", {exercise.entry_point})' in README
    assert f"exercises/{exercise.id}.py" in README
    assert f"hidden/{exercise.id}.py" in README


def test_the_answers_of_the_example_get_the_marks_they_state(example):
    exercise, hidden = example
    for control in hidden.controls:
        answer: dict[str, Any] = {}
        exec(control.answer, answer)
        passed = [check for check in exercise.checks + hidden.checks if passes(check, answer[exercise.entry_point])]

        assert sum(check.points for check in passed) == control.marks


def passes(check, function) -> bool:
    """Tell whether a function passes a check."""
    try:
        check.run(Answer(function), Draw(1))
    except CheckFailedError:
        return False
    return True
