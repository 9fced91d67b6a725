"""Advice follows from the type and the words of an exception, and only known ones have some."""

import io

import pytest
import torch

from autograder.host.exception_advice import advice


def _ask_nobody():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO())
        input()


RAISED = [
    (lambda: torch.sqrt(3), "use `math`"),
    (lambda: {[1]: 2}, "make a tuple"),
    (lambda: (lambda x: x)(1, 2), "Compare the parameters"),
    (lambda: (lambda x: x)(y=2), "Compare the parameters"),
    (lambda: torch.ones(2, 3) @ torch.ones(2, 3), "Print the shapes"),
    (lambda: torch.ones(2, 3) + torch.ones(4), "Print the shapes"),
    (lambda: torch.ones(2, 3).view(5), "count its elements"),
    (lambda: torch.ones(2, 3) @ torch.ones(3, 2).double(), "Print the dtypes"),
    (lambda: torch.ones(2, 3).t().view(6), "use reshape"),
    (lambda: bool(torch.ones(2)), "use torch.where"),
    (lambda: torch.ones(2, requires_grad=True).add_(1), "Make a new tensor"),
    (lambda: torch.ones(()).backward(), "cut the graph"),
    (lambda: next(iter([])), "second argument"),
    (lambda: _ask_nobody(), "as arguments"),
    (lambda: None.shape, "returns its result"),
    (lambda: iter(None), "returns its result"),
    (lambda: torch.fx.symbolic_trace(lambda x: x if x > 0 else -x), "a leaf"),
    (lambda: torch.fx.symbolic_trace(lambda x: float(x)), "a leaf"),
]


@pytest.mark.parametrize(("call", "says"), RAISED)
def test_what_python_and_torch_raise_has_advice(call, says):
    with pytest.raises(Exception) as raised:  # noqa: PT011 -- each has a type of its own
        call()

    assert says in advice(type(raised.value).__name__, str(raised.value))


@pytest.mark.parametrize(("kind", "message"), [("ValueError", "unhashable type"), ("TypeError", "none of these")])
def test_other_exceptions_have_none(kind, message):
    assert advice(kind, message) == ""
