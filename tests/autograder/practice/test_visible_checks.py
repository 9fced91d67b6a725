"""`check` gives the grader's result for the visible checks, and reports in a sentence what it cannot do."""

import functools
import itertools
import json
import linecache
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.exercises import all_exercises, find, registry
from autograder.host.exercise import Kind
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import open_sandbox
from autograder.practice import check, progress, visible_checks
from autograder.practice.errors import NoSourceError, NotForGradingError, NotGradableError, UnknownExerciseError
from autograder.practice.history import attempts
from autograder.practice.visible_checks import cell_source, require_gradable
from tests.drawn import some

COURSE = Path(__file__).parents[3]
EXERCISE = "04_read_a_graph"
STUB = 'def read_graph(rows):\n    """Answer."""\n    raise NotImplementedError("Write your answer here.")\n'
HALF = """\
def read_graph(rows):
    inputs = [row["name"] for row in rows if row["op"] == "placeholder"]
    return {"inputs": inputs, "leaf_modules": [], "two_users": [], "dead": [], "longest_path": 0}
"""
NEEDS_ANOTHER_CELL = """\
def read_graph(rows):
    return defined_elsewhere(rows)
"""
CELL = """\
import functools

import torch


def helper(x):
    return x + 1


def answer(x):
    return helper(x)


@functools.wraps(answer)
def decorated(x):
    return answer(x)


@torch.library.custom_op("lesson_of_checks::copied", mutates_args=())
def operator(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


class Pass:
    title = "a class"

    def run(self, x):
        return x
"""


# Notebook 12 imports Triton in a cell of its own, after it chose the interpreter. A cell of kernels that is defined,
# not run, needs no more of it than this, and the process of the tests stays free of Triton.
TRITON = {"triton": SimpleNamespace(jit=lambda kernel: kernel), "tl": SimpleNamespace(constexpr=int)}


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


@pytest.fixture
def run_cell() -> Callable[..., dict[str, Any]]:
    """Run a text as IPython runs a cell, after a set-up cell, and return the names it defines."""
    numbers = itertools.count()

    def run(text: str, setup: str = "", **given: object) -> dict[str, Any]:
        name = f"/tmp/ipykernel_1/{next(numbers)}.py"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names: dict[str, Any] = {"defined_elsewhere": len, **given}
        exec(setup, names)
        exec(compile(text, name, "exec"), names)
        return names

    return run


def solution(exercise: str) -> str:
    """The answer cell of the source notebook."""
    for path in (COURSE / "notebooks").glob("*/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["id"] == exercise:
                return "".join(cell["source"])
    raise LookupError(exercise)


@pytest.mark.parametrize(
    "exercise", some(all_exercises(), 3, name="exercises")
)  # the notebooks' run checks each of them in its kernel
def test_our_own_solution_passes_every_visible_check(
    exercise: str, run_cell: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find(exercise)
    for needed in map(find, found.needs):  # answered before, as in the notebook
        function = run_cell(solution(needed.id), setup=needed.setup)[needed.entry_point]
        monkeypatch.setattr(sys.modules["__main__"], needed.entry_point, function, raising=False)
    given = TRITON if found.kind is Kind.TRITON else {}
    score = check(exercise, run_cell(solution(exercise), setup=found.setup, **given)[found.entry_point])
    assert score == round(sum(c.points for c in found.checks), 6), str(score)
    assert score.record.status is ExerciseStatus.GRADED
    assert (score.record.speed is not None) == (found.speed is not None)
    assert [(a.exercise, a.points) for a in attempts()] == [(exercise, float(score))]


def test_a_half_right_answer_earns_its_part_and_shows_why(run_cell: Callable[..., dict[str, Any]]) -> None:
    score = check(EXERCISE, run_cell(HALF)["read_graph"])
    assert 0 < score < sum(c.points for c in find(EXERCISE).checks)
    assert "leaf_modules" in str(score)
    assert "leaf_modules" in score._repr_html_()
    assert "0.5 / 3.5 after 1 try" in str(progress())


def test_an_answer_that_needs_another_cell_fails_here_as_in_grading(
    run_cell: Callable[..., dict[str, Any]],
) -> None:
    score = check(EXERCISE, run_cell(NEEDS_ANOTHER_CELL)["read_graph"])
    assert score == 0
    assert "defined_elsewhere" in str(score)


def test_an_untouched_answer_is_reported_as_open_and_is_no_try(run_cell: Callable[..., dict[str, Any]]) -> None:
    score = check(EXERCISE, run_cell(STUB)["read_graph"])
    assert score == 0
    assert "Not answered yet." in str(score)
    assert "Traceback" not in str(score) + score._repr_html_()
    assert list(attempts()) == []


def test_an_unknown_exercise_is_one_sentence_with_the_nearest_ids(run_cell: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(UnknownExerciseError, match="did you mean 04_read_a_graph") as caught:
        check("04_read_graph", run_cell(HALF)["read_graph"])
    assert caught.value._render_traceback_() == [f"UnknownExerciseError: {caught.value}"]


def test_a_result_instead_of_the_function_is_refused_with_the_right_call() -> None:
    with pytest.raises(NoSourceError, match="without brackets"):
        check(EXERCISE, {"inputs": []})


def test_anything_but_a_function_of_this_cell_is_refused_in_a_sentence(run_cell: Callable[..., dict[str, Any]]) -> None:
    class_text = "class read_graph_pass:\n    def run(self, rows):\n        return {}\n"
    for text, name in ((class_text, "read_graph_pass"), ("f = lambda rows: {}\n", "f")):
        score = check(EXERCISE, run_cell(text)[name])
        assert score == 0
        assert "defines no function `read_graph`" in str(score)


def test_a_cell_that_was_run_again_is_checked_as_it_is_now(run_cell: Callable[..., dict[str, Any]]) -> None:
    first = run_cell(HALF.replace('"placeholder"', '"nothing"'))["read_graph"]
    second = run_cell(HALF)["read_graph"]
    assert check(EXERCISE, first) < check(EXERCISE, second)


def test_nbgrader_cannot_take_practice_for_evidence(
    monkeypatch: pytest.MonkeyPatch, run_cell: Callable[..., dict[str, Any]]
) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(NotForGradingError, match="gives no marks"):
        check(EXERCISE, run_cell(HALF)["read_graph"])


def test_hidden_checks_are_announced_by_category_without_their_content(
    run_cell: Callable[..., dict[str, Any]],
) -> None:
    hidden = [c for c in find(EXERCISE, hidden=True).checks if c.hidden]
    assert hidden
    shown = str(check(EXERCISE, run_cell(STUB)["read_graph"]))
    assert all(c.category in shown for c in hidden)
    assert not any(c.name in shown for c in hidden)


def test_without_the_hidden_part_their_points_are_still_announced(
    monkeypatch: pytest.MonkeyPatch, run_cell: Callable[..., dict[str, Any]]
) -> None:
    monkeypatch.setattr(registry, "hidden_part", lambda exercise_id: None)
    shown = str(check(EXERCISE, run_cell(STUB)["read_graph"]))
    assert "hidden checks worth 2.5 points, on cases not shown here" in shown


def test_an_untouched_answer_opens_no_sandbox(
    run_cell: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible_checks, "_sandbox", lambda: pytest.fail("a sandbox was opened"))

    assert "Not answered yet." in str(check(EXERCISE, run_cell(STUB)["read_graph"]))


def test_without_a_sandbox_it_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, run_cell: Callable[..., dict[str, Any]]
) -> None:
    monkeypatch.setattr(visible_checks, "_sandbox", lambda: open_sandbox(5, trust=True))
    score = check(EXERCISE, run_cell(HALF)["read_graph"])
    assert score > 0
    assert "ran unprotected" in str(score)


def test_a_score_is_a_plain_number_where_nbgrader_reads_it(
    monkeypatch: pytest.MonkeyPatch, run_cell: Callable[..., dict[str, Any]]
) -> None:
    class Printer:
        def text(self, shown: str) -> None:
            self.shown = shown

    score, printer = check(EXERCISE, run_cell(STUB)["read_graph"]), Printer()
    score._repr_pretty_(printer, False)
    assert printer.shown.startswith("04_read_a_graph: 0 / ")
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    score._repr_pretty_(printer, False)
    assert printer.shown == repr(score) == "0.0"
    full = check(EXERCISE, run_cell(solution(EXERCISE))["read_graph"])
    full._repr_pretty_(printer, False)
    assert float(printer.shown) == find(EXERCISE).points > full, "nbgrader's Validate button holds it against these"
    assert type(pickle.loads(pickle.dumps(score))) is float


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
        lambda cell: cell["operator"],
        lambda cell: cell["Pass"],
        lambda cell: cell["Pass"]().run,
        lambda cell: functools.partial(cell["answer"], 1),
    ],
    ids=["function", "helper", "decorated", "operator", "class", "method", "partial"],
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
        ("get_ipython().run_line_magic('timeit', 'answer(1)')\ndef answer(x):\n    return x\n", "a line with %, ! or"),
        ("get_ipython().system('ls')\n", "a line with %, ! or"),
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
