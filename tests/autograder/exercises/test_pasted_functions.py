"""No function that students install answers an exercise when it is pasted into the answer's cell.

Each is called in this process as the answer, also for one entry of an answer that has several, and with the inputs of a
program in a list, and earns nothing. WHOLE=1 tries all exercises. Answers on tensors are those of
test_pasted_formulas.py.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

import pytest

from autograder.exercises import all_exercises, find, programs
from autograder.exercises.hidden.fx_capture import render_graph, shape_propagation
from autograder.exercises.hidden.measuring import read_a_trace
from autograder.exercises.lessons import module_name
from autograder.exercises.quality.in_process import OwnAnswer, own_answer, points_of
from autograder.host.exercise import Kind
from autograder.host.session import AnswerFailedError
from tests.autograder.exercises.judged import reference
from tests.drawn import some

SEED = 5
ASKED = [each for each in all_exercises() if find(each).kind in (Kind.VALUE, Kind.ANALYSIS)]
LONG = ("09_config_experiment", "10_partition_without_cycles")  # whole runs only: the second takes two minutes
SHORT = [each for each in ASKED if each not in LONG]


class Seen(OwnAnswer):
    """An answer that notes the questions, and the names of its entries."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.asked: list[tuple[Any, ...]] = []
        self.entries: dict[str, None] = {}

    def ask(self, question: Any, *keys: str, member: str = "") -> Any:
        """Return the answer, and note the question and the answer's entries."""
        found = super().ask(question, *keys, member=member)
        self.asked.append((question, *keys))
        rows = found if isinstance(found, list) else [found]
        self.entries |= dict.fromkeys(name for row in rows if type(row) is dict for name in row)
        return found


def asked_of(exercise_id: str) -> Seen:
    """Return the reference, which has answered all visible checks."""
    seen = Seen(own_answer(exercise_id, reference(exercise_id))._function)
    points_of(exercise_id, seen, seed=SEED, hidden=False)
    return seen


def has_an_answer(answer: OwnAnswer, asked: list[tuple[Any, ...]]) -> bool:
    """Tell whether an answer answers any of the questions, without drawing them anew as the checks do."""
    for question in asked:
        with suppress(AnswerFailedError):
            answer.ask(*question)
            return True
    return False


def functions_of(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a module defines, and those in its tables."""
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value
        elif not name.startswith("__") and name != "EXERCISE":
            yield from functions_in(value)


def functions_in(value: Any, depth: int = 0) -> Iterator[Callable[..., Any]]:
    """Yield the functions in a table of any form."""
    if isinstance(value, FunctionType) and value.__name__ == "<lambda>":
        yield value
    elif depth < 4 and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from functions_in(item, depth + 1)
    elif depth < 4 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from functions_in(getattr(value, name), depth + 1)


def as_answers(function: Callable[..., Any], entries: list[str]) -> Iterator[Callable[..., Any]]:
    """Yield the ways in which somebody could put a function into an answer's cell."""
    yield function
    yield lambda first, *rest: function(first, list(rest))
    if entries:
        yield lambda *asked: {entry: function(*asked, entry) for entry in entries}
        yield lambda *asked: {entry: function(*asked)[entry] for entry in entries}
        yield lambda *asked: dict.fromkeys(entries, function(*asked))
        yield lambda *asked: dict.fromkeys(entries, len(function(*asked)))
        yield lambda first, *rest: dict.fromkeys(entries, function(first, list(rest)))


def takes_questions(function: Callable[..., Any]) -> bool:
    """Tell whether a function could be asked, unlike those that draw or judge."""
    return not {"draw", "answer"} & inspect.signature(function).parameters.keys()


def best_points(exercise_id: str, functions: list[Callable[..., Any]]) -> dict[str, tuple[float, str]]:
    """Return for each check the most that a function earns, and its name."""
    seen, best = asked_of(exercise_id), dict.fromkeys([c.name for c in find(exercise_id).checks], (0.0, ""))
    for function in filter(takes_questions, functions):
        for answer in map(OwnAnswer, as_answers(function, list(seen.entries))):
            if has_an_answer(answer, seen.asked):
                for check, earned in points_of(exercise_id, answer, seed=SEED, hidden=False).items():
                    best[check] = max(best[check], (earned, function.__name__))
    return best


@pytest.mark.parametrize("exercise_id", [*some(SHORT, 3, name="pasted"), *some(LONG, 0, name="pasted")])
def test_no_function_that_students_install_is_an_answer(exercise_id):
    modules = [importlib.import_module(module_name(exercise_id))]
    for found in pkgutil.iter_modules(programs.__path__):
        modules.append(importlib.import_module(f"{programs.__name__}.{found.name}"))
    best = best_points(exercise_id, [each for module in modules for each in functions_of(module)])

    # a valid cut whose price is far from the least earns a trace of its check
    assert {check: told for check, told in best.items() if told[0] > 0.1} == {}


@pytest.mark.parametrize(
    ("exercise_id", "function"),
    [
        ("02_read_a_trace", read_a_trace.truth),
        ("04_render_graph", render_graph.rendered),
        ("04_shape_propagation", shape_propagation.shapes),
    ],
)
def test_a_function_of_the_hidden_part_would_be_an_answer(exercise_id, function):
    best = best_points(exercise_id, [function])

    assert {name: earned for name, (earned, _) in best.items()} == {c.name: c.points for c in find(exercise_id).checks}
