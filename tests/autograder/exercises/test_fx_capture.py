"""A wrong reading of a graph hears what was probably thought."""

import importlib

import pytest

from autograder.exercises.lessons import module_name
from autograder.host.draw import Draw
from autograder.host.kinds import analysis_programs
from autograder.host.kinds.analysis import difference
from autograder.host.kinds.differences import same
from tests.autograder.exercises.judged import judged, known_answer, messages


@pytest.mark.parametrize(
    ("exercise", "control", "check", "says"),
    [
        ("04_custom_tracer", "whole blocks", "three blocks, a part renamed", "whole blocks became one node"),
        ("04_custom_tracer", "inside torch.nn, too", "one block", "layers of torch.nn were opened as well"),
        ("04_custom_tracer", "two classes by heart", "another class in the list", "whatever the list says"),
        ("04_custom_tracer", "by path", "three blocks, a part renamed", "control flow"),
        ("04_render_graph", "lists as tuples", "keywords and methods", "lists have square ones"),
        ("04_shape_propagation", "tensors only", "tuples, numbers and None", "only tensors were described"),
        ("04_cost_annotator", "nothing is freed", "the peak of a residual over a chain", "as if none were ever freed"),
        ("04_render_graph", "by name", "nodes in order, by number", "called by their names"),
        ("04_render_graph", "keywords as written", "keywords and methods", "sort them by name"),
        ("04_choose_escape", "freezes whatever it is given", "arguments of the model itself", "freezes one branch"),
        ("04_choose_escape", "gives up too early", "every place with every need", "is a smaller step"),
    ],
)
def test_a_wrong_reading_hears_what_was_thought(exercise: str, control: str, check: str, says: str) -> None:
    assert says in messages(judged(exercise, known_answer(exercise, control), seed=3))[check]


@pytest.mark.parametrize(
    ("exercise_id", "programs", "truth"),
    [
        ("04_shape_propagation", "plain", "shapes"),
        ("04_render_graph", "simple", "rendered"),
    ],
)
def test_another_seed_asks_about_another_graph(exercise_id: str, programs: str, truth: str) -> None:
    module, hidden = (importlib.import_module(module_name(exercise_id, hidden=each)) for each in (False, True))
    asked = [getattr(module, programs)(Draw(seed, "a"))[0] for seed in (1, 2)]
    first, second = (getattr(hidden, truth)(*getattr(analysis_programs, a.make)(**a.arguments)) for a in asked)
    assert not same(first, second)


def test_a_difference_is_told_at_its_place() -> None:
    assert not same({"a": True}, {"a": 1})
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 3}) == "b is 2; expected 3."
    assert difference({"a": 1}, {"a": 1, "b": 3}) == "b is missing."
    assert difference([1, 2], [1, 3]) == "entry 1 is 2; expected 3."
    assert difference([1, 2], [1, 3, 4]) == "entry 1 is 2; expected 3."
    assert difference([1], [1, 2]) == "there are 1 entries, equal as far as they go; expected 2."
    assert difference("x\ny", "x\nz") == "line 2 is 'y'; expected 'z'."
    assert difference("x", "x\nz") == "line 2 is ''; expected 'z'."
    assert difference(None, 3) == "the result is None; expected 3."
