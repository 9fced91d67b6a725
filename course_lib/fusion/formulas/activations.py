"""GELU by erf, GELU by tanh and SiLU, as formulas of one value x and of one function of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.fusion.calls import Call
from course_lib.fusion.formulas.expansion import Expanded, Expansion
from course_lib.fusion.formulas.polynomial import Monomial
from course_lib.fusion.formulas.reading import (
    Reading,
    compared,
    float16_objection,
    literal_objection,
    operands_before,
    results_after,
    tolerance,
)
from course_lib.fusion.operands import tensor_facts

_SLOPE = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Activation:
    """outside(x, f(inside(x))), with polynomials inside and outside of the function f."""

    name: str
    inside: Mapping[int, float]  # power of x -> coefficient
    outside: Mapping[tuple[int, int], float]  # powers of x and of f -> coefficient
    replacement: Callable[..., torch.Tensor]


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def _silu(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x)


# By the operator that is f. GELU is x times the normal distribution function, which is (1 + erf(x / √2)) / 2; its tanh
# approximation is that of Hendrycks and Gimpel, arXiv:1606.08415.
ACTIVATIONS: Mapping[str, Activation] = {
    "erf": Activation("GELU", {1: math.sqrt(0.5)}, {(1, 0): 0.5, (1, 1): 0.5}, _gelu),
    "ndtr": Activation("GELU", {1: 1.0}, {(1, 1): 1.0}, _gelu),
    "tanh": Activation("GELU by tanh", {1: _SLOPE, 3: _SLOPE * 0.044715}, {(1, 0): 0.5, (1, 1): 0.5}, _gelu_tanh),
    "sigmoid": Activation("SiLU", {1: 1.0}, {(1, 1): 1.0}, _silu),
}


def activations(call: Call) -> Iterator[Reading]:
    """Yield each way to read an activation around a call of its function.

    x may be any value that arithmetic leads to inside the function: a sum with a bias, say, rather than the bias.
    """
    activation = ACTIVATIONS[call.operator.name]
    for x in operands_before(call["input"]):
        facts = tensor_facts(x)
        allowed = tolerance(facts.dtype if facts is not None else torch.float32)
        inside = Expansion((x,)).of(call["input"])
        wanted = {_powers({x: power}): number for power, number in activation.inside.items()}
        differing = compared(inside.polynomial, wanted, allowed)
        if differing is not None:
            yield from _around(call.node, activation, x, inside, differing, allowed)


def _around(
    function: fx.Node, activation: Activation, x: fx.Node, inside: Expanded, differing: list[str], allowed: float
) -> Iterator[Reading]:
    expansion = Expansion((x, function))
    wanted = {_powers({x: first, function: second}): n for (first, second), n in activation.outside.items()}
    for result in results_after(function):
        outside = expansion.of(result)
        also = compared(outside.polynomial, wanted, allowed)
        if also is not None:
            objection = literal_objection(result, activation.name, [*differing, *also])
            if objection is None and max(activation.inside) > 1:
                objection = float16_objection(x)
            nodes = outside.nodes | inside.nodes | {function}
            yield Reading(result, nodes, {"x": x}, activation.replacement, objection)


def _powers(exponents: Mapping[fx.Node, int]) -> Monomial:
    return frozenset((value, exponent) for value, exponent in exponents.items() if exponent)
