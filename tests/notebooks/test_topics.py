"""What the course says to make work is there: each topic's cells stand in their notebooks, and its tests exist."""

import ast
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2]
TABLE = COURSE / "notebooks" / "topics.md"
TOPICS = range(1, 38)
CORE = {*range(1, 25), 27, 28, 29, 32, 33, 36}  # what notebooks 00 to 09 must cover
OWN_EXECUTION = "-"


@dataclass(frozen=True)
class Topic:
    """One line of the table."""

    number: int
    name: str
    cells: tuple[str, ...]  # "notebook#cell"
    tests: tuple[str, ...]  # "file", "file::function", or OWN_EXECUTION


def topics() -> list[Topic]:
    """The lines of the table, in their order."""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| *\d+ *\|", line):
            number, name, cells, tests = (part.strip() for part in line.strip().strip("|").split("|"))
            named = (OWN_EXECUTION,) if tests == OWN_EXECUTION else tuple(re.findall(r"`([^`]+)`", tests))
            found.append(Topic(int(number), name, tuple(re.findall(r"`([^`]+)`", cells)), named))
    return found


each_topic = pytest.mark.parametrize("topic", topics(), ids=lambda topic: f"{topic.number} {topic.name}")


@cache
def cell_ids(notebook: str) -> set[str]:
    path = COURSE / "notebooks" / notebook / f"{notebook}.ipynb"
    return {cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]} if path.exists() else set()


@cache
def functions(path: str) -> set[str]:
    """The names of the functions that a file of tests defines; none if there is no such file."""
    file = COURSE / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def is_there(test: str) -> bool:
    """Whether `test` is the notebook's own execution, or a file of tests that has the function it names."""
    path, _, function = test.partition("::")
    found = functions(path)
    return test == OWN_EXECUTION or (function in found if function else any(f.startswith("test_") for f in found))


def test_topics_are_numbered_in_order_each_once() -> None:
    numbers = [topic.number for topic in topics()]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(TOPICS)


@each_topic
def test_the_cells_of_a_topic_stand_in_their_notebooks(topic: Topic) -> None:
    assert topic.name
    assert topic.cells
    for place in topic.cells:
        notebook, _, cell = place.partition("#")
        assert cell in cell_ids(notebook), f"{notebook} has no cell {cell!r}"


@each_topic
def test_the_tests_of_a_topic_exist(topic: Topic) -> None:
    assert topic.tests
    assert [test for test in topic.tests if not is_there(test)] == []


def test_a_test_that_does_not_exist_is_seen() -> None:
    assert is_there("tests/notebooks/test_topics.py::test_a_test_that_does_not_exist_is_seen")
    assert not is_there("tests/notebooks/test_topics.py::test_nobody_wrote")
    assert not is_there("tests/notebooks/test_nowhere.py")


def test_every_core_topic_has_its_line() -> None:
    missing = sorted(CORE - {topic.number for topic in topics()})
    assert missing == []
