"""Arithmetic is expanded alike in a pattern and in a graph, and what may differ in value stays apart."""

from collections.abc import Callable

import pytest
import torch
from torch import fx

from course_lib.fusion.expressions.formula_pattern import FormulaPattern
from course_lib.fusion.expressions.polynomial import Expansion, written

Tensor = torch.Tensor
Program = Callable[[Tensor, Tensor], Tensor]

POLYNOMIALS: dict[str, tuple[Program, str]] = {
    "square of a sum": (lambda x, y: (x + 2) ** 2, "1·x^2 + 4·x + 4"),
    "alpha": (lambda x, y: torch.sub(x, y, alpha=3), "1·x + -3·y"),
    "quotient": (lambda x, y: (x + 1) / (2 * y), "0.5·x·y^-1 + 0.5·y^-1"),
    "quotient by a sum": (lambda x, y: x / (x + y), "1·add^-1·x"),
    "addcdiv": (lambda x, y: torch.addcdiv(x, x, y, value=2), "1·x + 2·x·y^-1"),
    "negative power": (lambda x, y: (2 * x) ** -2, "0.25·x^-2"),
    "a value that cancels": (lambda x, y: x + y - y, "1·x + 0·y"),
    "a number that cancels": (lambda x, y: x + 1 - 1, "1·x"),
    "a value over itself": (lambda x, y: x * y / x, "1·truediv"),
    "a power too high": (lambda x, y: x**5, "1·pow_1"),
    "rounding": (lambda x, y: torch.div(x, 2, rounding_mode="floor"), "1·div"),
    "a function": (lambda x, y: x * torch.exp(y) * torch.exp(y), "1·exp·exp_1·x"),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_arithmetic_is_a_polynomial(name: str) -> None:
    program, expected = POLYNOMIALS[name]
    graph = fx.symbolic_trace(program).graph
    chosen = [node for node in graph.nodes if node.op == "placeholder" or "exp" in node.name]
    (result,) = graph.output_node().args
    assert " + ".join(written(number, term) for term, number in Expansion(chosen).of(result).items()) == expected


def _matched(pattern: Callable[..., Tensor], program: Program, *numbers: str) -> list[dict[str, object]]:
    nodes = list(fx.symbolic_trace(program).graph.nodes)
    found = [match for node in nodes for match in FormulaPattern(pattern, numbers).matches(node)]
    return [{name: str(value) for name, value in match.operands.items()} for match in found if not match.differences]


def _root(x: Tensor, bias: Tensor, eps: float) -> Tensor:
    return x * torch.sqrt(x + eps) + bias


def test_a_new_formula_is_one_function() -> None:
    assert _matched(_root, lambda x, y: y + x / (x - -0.5).rsqrt(), "eps") == [{"x": "x", "eps": "0.5", "bias": "y"}]


def test_a_number_that_is_not_added_is_zero() -> None:
    assert _matched(_root, lambda x, y: y + x * x**0.5, "eps") == [{"x": "x", "eps": "0.0", "bias": "y"}]


def test_a_parameter_stands_for_one_value() -> None:
    assert _matched(_root, lambda x, y: y + x * torch.sqrt(y + 1), "eps") == []
    assert _matched(_root, lambda x, y: x * torch.sqrt(x + 1), "eps") == []
