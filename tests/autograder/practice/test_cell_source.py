"""Practice gives the grader the whole cell that defines the answer."""

import functools
import linecache
from collections.abc import Callable
from typing import Any

import pytest

from autograder.practice.errors import NoSourceError, NotGradableError
from autograder.practice.visible_checks import cell_source, require_gradable

CELL = """\
import functools


def helper(x):
    return x + 1


def answer(x):
    return helper(x)


@functools.wraps(answer)
def decorated(x):
    return answer(x)


class Pass:
    title = "a class"

    def run(self, x):
        return x
"""


@pytest.fixture
def cell() -> dict[str, Any]:
    """The names that a notebook cell defines, with its text kept as IPython keeps it."""
    name = "/tmp/ipykernel_1/123456.py"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    exec(compile(CELL, name, "exec"), names)
    return names


@pytest.mark.parametrize(
    "pick",
    [
        lambda cell: cell["answer"],
        lambda cell: cell["helper"],
        lambda cell: cell["decorated"],
        lambda cell: cell["Pass"],
        lambda cell: cell["Pass"]().run,
        lambda cell: functools.partial(cell["answer"], 1),
    ],
    ids=["function", "helper", "decorated", "class", "method", "partial"],
)
def test_the_whole_cell_is_found_from_anything_it_defines(
    cell: dict[str, Any], pick: Callable[[dict[str, Any]], object]
) -> None:
    assert cell_source(pick(cell)) == CELL


def test_a_function_of_a_module_gives_the_module() -> None:
    assert "test_a_function_of_a_module_gives_the_module" in cell_source(test_a_function_of_a_module_gives_the_module)


@pytest.mark.parametrize("given", [3.5, None, "scaled_dot_product", len], ids=repr)
def test_anything_but_a_python_function_is_named_in_a_sentence(given: object) -> None:
    with pytest.raises(NoSourceError, match="without brackets"):
        cell_source(given)


def test_a_function_without_stored_text_is_refused_with_a_remedy() -> None:
    names: dict[str, Any] = {}
    exec("def lost(): return 1", names)
    with pytest.raises(NoSourceError, match=r"lost .* Define it in a notebook cell"):
        cell_source(names["lost"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_ipython().run_line_magic('timeit', 'answer(1)')\ndef answer(x):\n    return x\n", "a line with % or !"),
        ("get_ipython().system('ls')\n", "a line with % or !"),
        ("def answer(x):\n    return x\n\ncheck('04_read_a_graph', answer)\n", "in the one below"),
        ("check('04_read_a_graph', lambda rows: {})\n", "in the one below"),
    ],
)
def test_a_cell_that_runs_in_a_notebook_only_is_refused_with_a_remedy(text: str, words: str) -> None:
    with pytest.raises(NotGradableError, match=words):
        require_gradable(text)


@pytest.mark.parametrize("text", ["def answer(x:\n", "def answer(x):\n    return x.check()\n", ""])
def test_other_cells_are_left_to_the_grader(text: str) -> None:
    require_gradable(text)
