"""What is withdrawn runs nowhere in its process, and what is left runs as before."""

import multiprocessing
import warnings

import pytest
import torch
from torch.nn import functional as F

from autograder.worker.withdrawn_parts import WithdrawnError, withdraw

PLACES = ("aten::scaled_dot_product", "aten::_scaled_dot_product", "torch._C._create_function_from_trace")
MATHS = torch.ops.aten._scaled_dot_product_attention_math


def attended(x):
    return F.scaled_dot_product_attention(x, x, x)


def nested(x):
    parts = torch.nested.nested_tensor(list(x.transpose(1, 2))).transpose(1, 2)
    return F.scaled_dot_product_attention(parts, parts, parts)


ATTENTIONS = {
    "called": attended,
    "by its parts": lambda x: MATHS(x, x, x),
    "decomposed": lambda x: torch.ops.aten.scaled_dot_product_attention.default.decompose(x, x, x),
    "its parts decomposed": lambda x: MATHS.default.decompose(x, x, x),
    "with gradients": lambda x: attended(x.clone().requires_grad_()),
    "for each example": lambda x: torch.func.vmap(attended)(x),
    "its parts for each example": lambda x: torch.func.vmap(lambda y: MATHS(y, y, y))(x),
    "under another derivative": lambda x: torch.func.grad(lambda y: attended(y).sum())(x),
    "of nested tensors": nested,
    "scripted": lambda x: torch.jit.script(attended)(x),
}


def by_hand(x):
    leaf = x.clone().requires_grad_()
    ((leaf @ leaf.mT).softmax(-1) @ leaf).sum().backward()


def becomes(name):
    """Withdraw, and return what the attention of this name does then."""
    withdraw(PLACES)
    warnings.simplefilter("ignore")  # nested tensors are called a prototype
    try:
        (ATTENTIONS | {"by hand": by_hand})[name](torch.randn(2, 3, 4, 5))
    except Exception as error:  # torch.jit wraps what a kernel raised
        return WithdrawnError.__name__ if WithdrawnError.__name__ in f"{type(error).__name__} {error}" else str(error)
    return "ran"


def traced():
    """Withdraw, and tell whether the function of C++ is left."""
    withdraw(PLACES)
    return hasattr(torch._C, "_create_function_from_trace")


@pytest.fixture(scope="module")
def elsewhere():
    """Other processes, each for one call, since nothing brings back what was withdrawn."""
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        yield pool


@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_operator_that_was_withdrawn_runs_in_no_way(name, elsewhere):
    assert elsewhere.apply(becomes, (name,)) == "WithdrawnError"


def test_what_was_not_withdrawn_runs_with_its_gradient(elsewhere):
    assert elsewhere.apply(becomes, ("by hand",)) == "ran"


def test_a_function_of_c_is_gone(elsewhere):
    assert not elsewhere.apply(traced)
