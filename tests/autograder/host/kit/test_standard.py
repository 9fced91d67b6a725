"""The standard case set tells right functions from those that are wrong in one way, and names misconceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from autograder.host.arena import to_raw
from autograder.host.kit.answers.tensors import Case, TensorAnswer
from autograder.host.kit.draw import Draw
from autograder.host.kit.exercise import CheckFailedError
from autograder.host.kit.standard import _CHECKS, Standard, standard_checks
from autograder.host.kit.standard_misconceptions import Misconception, agrees_or_says, explained_value
from autograder.protocol import Message
from autograder.worker.functions import tensor_answer


def reference(x, bias):
    return F.silu(x + bias)


def make(draw, size, dtype):
    return draw.normal(size, 8, dtype=dtype), draw.normal(8, dtype=dtype)


STANDARD = Standard(reference, make, ("the output",), ("x", "bias"))
EVERY = standard_checks(STANDARD, dict.fromkeys(_CHECKS, 1.0))


class InProcess:
    """A session that calls a function here."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._answer = tensor_answer(function)

    def call(self, body, inputs=()):
        raws = [to_raw(t) for t in inputs]
        before = [bytes(r.data) for r in raws]
        given = [type(r)(r.dtype, r.shape, r.strides, bytearray(r.data), shared=True) for r in raws]
        reply, outputs = self._answer(Message(body, tuple(given)))
        written = [i for i, (r, b) in enumerate(zip(given, before, strict=True)) if bytes(r.data) != b]
        return Message(reply, tuple(outputs)), written


def failing(function: Callable[..., Any]) -> set[str]:
    """The categories of the standard checks that fail for a function."""
    found = set()
    for check in EVERY:
        try:
            check.run(TensorAnswer(InProcess(function)), Draw(1, check.name))
        except (CheckFailedError, RuntimeError):
            found.add(check.category)
    return found


def test_the_reference_passes_and_so_does_another_order():
    assert failing(reference) == set()
    assert failing(lambda x, bias: (x + bias) * torch.sigmoid(bias + x)) == set()


last = []


def remembering(x, bias):
    last.append(reference(x, bias))
    return last[-2] if len(last) > 1 and last[-2].shape == last[-1].shape else last[-1]


shelf = {}


def shelved(x, bias):
    shelf.update(x=x, bias=bias)
    for _ in range(3):
        F.silu(x + bias)
    return F.silu(shelf["x"] + shelf["bias"])


def in_place(x, bias):
    return F.silu(x.detach().add_(bias))


def by_storage(x, bias):
    return F.silu(torch.as_strided(x, x.shape, (8, 1)) + bias)


WRONG = [
    ("tiles of four", lambda x, b: torch.cat([F.silu(x[: len(x) // 4 * 4] + b), x[len(x) // 4 * 4 :]]), "odd sizes"),
    ("reads storage, not strides", by_storage, "strides"),
    ("fails on no rows", lambda x, b: reference(x, b) / len(x) * len(x) if len(x) else 1 / len(x), "empty batch"),
    ("single precision inside", lambda x, b: reference(x.float(), b.float()).to(x.dtype), "precision"),
    ("no gradient by the bias", lambda x, b: reference(x, b.detach()), "gradients"),
    ("writes into x", in_place, "side effects"),
    ("returns x itself for large numbers", lambda x, b: x.view_as(x), "side effects"),
    ("remembers", remembering, "calls in a row"),
    ("keeps its inputs where another thread finds them", shelved, "threads"),
]


@pytest.mark.parametrize(("name", "function", "category"), WRONG, ids=[w[0] for w in WRONG])
def test_a_function_that_is_wrong_in_one_way_fails_the_check_for_it(name, function, category):
    def forgiving(x, bias):
        try:
            return function(x, bias)
        except ZeroDivisionError:
            return torch.ones(1)

    assert category in failing(forgiving)


def test_a_category_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="odd sizes"):
        standard_checks(STANDARD, {"odd size": 1})


def test_a_misconception_is_named_and_another_mistake_is_described():
    check = agrees_or_says(
        reference,
        lambda draw: [Case(make(draw, 4, torch.float32))],
        ("the output",),
        [
            Misconception(lambda x, b: x.view(3, 3), "never runs"),
            Misconception(lambda x, b: F.silu(x) + b, "The bias was added after SiLU."),
        ],
    )
    with pytest.raises(CheckFailedError, match="The bias was added after SiLU"):
        check(TensorAnswer(InProcess(lambda x, b: F.silu(x) + b)), Draw(1))
    with pytest.raises(CheckFailedError, match="off by"):
        check(TensorAnswer(InProcess(lambda x, b: F.silu(x + b) * 2)), Draw(1))
    check(TensorAnswer(InProcess(reference)), Draw(1))


def test_a_misconception_about_plain_data_is_named():
    known = [Misconception(lambda rows: 1 // len(rows), "never runs"), Misconception(len, "Edges were counted.")]

    assert explained_value(0, [], known) == "Edges were counted."
    assert explained_value(False, [], known) == ""
    assert explained_value(7, [1], known) == ""
