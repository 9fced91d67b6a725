"""Answers in plain data may hold values of derived classes; what crosses is the plain value."""

from collections import OrderedDict, defaultdict
from enum import IntEnum
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from autograder.worker.kinds.value import NotPlainDataError, plain_data


class Level(IntEnum):
    """A number with a name."""

    HIGH = 3


class Liar(str):
    """A text that says something else of itself than it holds."""

    def __str__(self) -> str:
        return "another"


DERIVED = {
    "the version of torch": (torch.__version__, str.__str__(torch.__version__)),
    "a number of NumPy": (np.float64(0.5), 0.5),
    "a shorter number of NumPy": (np.float32(0.5), 0.5),
    "an integer of NumPy": (np.int64(3), 3),
    "a bool of NumPy": (np.bool_(True), True),
    "a tensor of one number": (torch.tensor(3), 3),
    "a truth of a tensor": (torch.tensor([1, 2]).any(), True),
    "a fraction": (Fraction(1, 2), 0.5),
    "a member of an enumeration": (Level.HIGH, 3),
    "a text with methods of its own": (Liar("held"), "held"),
    "dicts that remember": (OrderedDict(a=defaultdict(int, b=Level.HIGH)), {"a": {"b": 3}}),
    "a key of a derived class": ({Liar("held"): True}, {"held": True}),
    "a size": (torch.Size([2, 3]), [2, 3]),
}


def types_of(value):
    """Give the classes of all values inside."""
    if isinstance(value, dict):
        return {type(value), *(t for pair in value.items() for each in pair for t in types_of(each))}
    return {type(value), *(t for each in value for t in types_of(each))} if isinstance(value, list) else {type(value)}


@pytest.mark.parametrize(("value", "plain"), DERIVED.values(), ids=DERIVED)
def test_a_value_of_a_derived_class_crosses_as_the_plain_one(value, plain):
    crossed = plain_data(value, "the result")
    assert crossed == plain
    assert types_of(crossed) <= {bool, int, float, str, list, dict, type(None)}


@pytest.mark.parametrize(
    "value", [np.float64("nan"), float("inf"), SimpleNamespace(), {1: 2}, {"a": {3}}, np.array([3])]
)
def test_other_values_are_refused_by_their_place(value):
    with pytest.raises(NotPlainDataError, match="the result"):
        plain_data({"a": value}, "the result")
