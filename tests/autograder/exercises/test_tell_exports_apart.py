"""Exercise 14.4: the models are what they are said to be, and what people likely get wrong is named."""

import re
import types

import pytest
import torch

from autograder.exercises.hidden.shipping import tell_exports_apart as hidden
from autograder.exercises.shipping import tell_exports_apart as visible
from autograder.exercises.shipping.tell_exports_apart import NAMES, Twins, close, require_shown
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from tests.autograder.exercises.judged import judged, reference, said
from tests.drawn import third

EXERCISE = "14_tell_exports_apart"
SHOWN = ("average", "centred", "positions", "statistics", "branch")
KEPT = ("small", "formula", "smallest", "halves", "negatives", "large", "whole", "few")
# words of a message, change of the reference
NAMED = [
    ("name the wrong model", ("return (name, inputs)", "return (('second', 'first')[at], inputs)")),
    ("Return a pair", ("return (name, inputs)", "return inputs")),
    ("Try longer inputs", ("int(torch.randint(low, high + 1, ()))", "low")),
    ("Try larger ones", ("(low + (high - low) * torch.rand(shape)) * factor", "torch.randn(shape)")),
    ("its limits are -100 and 100", ("return (name, inputs)", "return (name, tuple(each + 300 for each in inputs))")),
    ("is 1000 in x; its limits are 1 and", ("return (name, inputs)", "return (name, (torch.zeros(1000, 6),))")),
    ("expected torch.float32 of shape (batch, 6)", ("return (name, inputs)", "return (name, (torch.zeros(6),))")),
]


def programs(text: str) -> types.ModuleType:
    """The host's text as a module, as a worker runs it."""
    module = types.ModuleType("programs")
    exec(compile(text, "<programs>", "exec", dont_inherit=True), module.__dict__)
    return module


MAKERS = [(visible.TEXT, getattr(visible, name)) for name in SHOWN]
MAKERS += [(hidden.MORE, getattr(hidden, name)) for name in KEPT]
each_maker = pytest.mark.parametrize(("text", "make"), MAKERS, ids=[*SHOWN, *KEPT])


def ordinary(twins: Twins, draw: Draw, size: int) -> list[torch.Tensor]:
    """Inputs as an example has them: small positive numbers that are no halves, and masks that keep all."""
    inputs = []
    for dtype, dims in twins.inputs.values():
        shape = [min(size, int(twins.limits[dim][1])) if isinstance(dim, str) else dim for dim in dims]
        values = draw.normal(*shape).abs().clamp(max=1.8) + 0.01
        inputs.append({torch.float32: values, torch.int64: values.long() + 1}.get(dtype, torch.ones(shape) > 0))
    return inputs


@each_maker
def test_the_right_model_agrees_with_the_module_on_ordinary_inputs_whichever_is_wrong(text, make):
    for seed, wrong in enumerate(NAMES):
        twins = make(Draw(seed, "twins"))
        results = programs(text).run(twins.question(wrong=wrong, longest="first"), *ordinary(twins, Draw(seed, "x"), 5))
        right = NAMES[1 - NAMES.index(wrong)]
        assert close(results[right], results["module"], 1e-4)
        assert results[wrong].shape == results["module"].shape


@pytest.mark.parametrize(
    "name", ["positions", "branch", "small", "formula", "smallest", "halves", "negatives", "large", "whole"]
)
def test_the_wrong_model_agrees_as_well_on_ordinary_inputs(name):
    text, make = next(each for each in MAKERS if each[1].__name__ == name)
    twins = make(Draw(3, "twins"))
    results = programs(text).run(twins.question(wrong="first", longest="first"), *ordinary(twins, Draw(3, "x"), 5))
    assert close(results["first"], results["module"], 1e-2)
    with pytest.raises(CheckFailedError, match="Neither model differs"):
        require_shown(results, "first", "first", "Try others.", "")


@each_maker
def test_a_question_does_not_say_which_model_is_wrong(text, make):
    one, other = (make(Draw(4, "twins")).question(wrong=name, longest=name) for name in NAMES)
    assert one["first"] == other["second"]
    assert one["second"] == other["first"]
    assert {**one, "first": "", "second": ""} == {**other, "first": "", "second": ""}


TRIED = third(NAMED, name="mistakes in tell_exports_apart")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[words for words, _ in TRIED])
def test_a_likely_mistake_is_named(mistake):
    words, change = mistake
    assert words in said(EXERCISE, change, hidden=False)


def test_a_model_that_does_not_run_shows_nothing():
    results = {"module": torch.ones(2), "first": "INVALID_ARGUMENT", "second": torch.ones(2)}
    with pytest.raises(CheckFailedError, match="Choose inputs that both models take"):
        require_shown(results, "first", "first", "", "")


def test_inputs_on_which_the_right_model_is_wrong_as_well_show_nothing():
    results = {"module": torch.ones(2), "first": torch.zeros(2), "second": torch.full((2,), 1.01)}
    with pytest.raises(CheckFailedError, match="even the right model"):
        require_shown(results, "first", "first", "", "")


def test_one_name_for_all_earns_nothing():
    answer = reference(EXERCISE, ("return (name, inputs)", "return ('first', inputs)"))
    assert judged(EXERCISE, answer).points == 0


@each_maker
def test_the_number_of_nodes_says_nothing(text, make):
    sizes = {}
    for wrong in NAMES:
        for longest in NAMES:
            question = make(Draw(6, "twins")).question(wrong=wrong, longest=longest)
            sizes[wrong, longest] = [len(re.findall(" = [A-Z]", question[name])) for name in NAMES]
    assert sizes["first", "first"] == sizes["second", "first"]
    assert sizes["first", "second"] == sizes["second", "second"] == sizes["first", "first"][::-1]
