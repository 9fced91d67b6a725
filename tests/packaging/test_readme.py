"""What the README tells a newcomer to type is there, and its example of an exercise is one."""

from __future__ import annotations

import re
import runpy

import pytest

from autograder.host.kit.draw import Draw
from autograder.host.kit.exercise import CheckFailedError, Exercise
from scripts import draw_picture
from tests.architecture.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


class Answer:
    """Stands in for the student's function, without a worker."""

    def __init__(self, function):
        self.ask = function


@pytest.fixture
def example(tmp_path) -> Exercise:
    """Return the exercise in the README's first block of Python."""
    block = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert block
    file = tmp_path / "04_count_nodes.py"
    file.write_text(block[1], encoding="utf-8")
    return runpy.run_path(str(file))["EXERCISE"]


def test_every_target_that_the_readme_names_exists():
    named = set(re.findall(r"`?make ([a-z-]+)(?:`|  )", README))

    assert {"demo", "test"} <= named
    assert [target for target in named if f"\n{target}:" not in MAKEFILE] == []


def test_every_link_and_picture_exists():
    assert [path for path in re.findall(r"\]\(([^)#:]+)\)", README) if not (ROOT / path).exists()] == []


def test_the_picture_is_what_the_script_draws():
    assert draw_picture.picture() == (ROOT / "docs" / "picture.svg").read_text(encoding="utf-8")


def test_the_example_is_an_exercise_whose_points_add_up(example):
    assert example.points == sum(check.points for check in example.checks)
    assert f'check("{example.id}", {example.entry_point})' in README
    assert f"exercises/{example.id}.py" in README


def test_the_example_passes_a_right_answer_and_fails_a_wrong_one(example):
    example.checks[0].run(Answer(len), Draw(1))

    with pytest.raises(CheckFailedError):
        example.checks[0].run(Answer(lambda rows: len(rows) + 1), Draw(1))
