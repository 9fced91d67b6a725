"""LayerNorm, written as (x - mean) / √(variance + eps) · weight + bias.

The variance must be the biased one, as LayerNorm's is, and eps must stand under the root: `x.std(-1)` is unbiased, and
`(x - mean) / (std + eps)` is another function. The mean of the squares less the square of the mean is left alone: it
cancels out where the mean is large, and may even be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.fusion.calls import Call, operator_of
from course_lib.fusion.formulas.expansion import Expanded, Expansion
from course_lib.fusion.formulas.polynomial import ONE, Monomial
from course_lib.fusion.formulas.reading import Reading, float16_objection, operands_before, results_after
from course_lib.fusion.formulas.reductions import Reduction, deviation, mean, size_of, variance
from course_lib.fusion.operands import number_of, tensor_facts
from course_lib.fusion.operators import Operator, operators
from course_lib.fusion.rules import Objection


@dataclass(frozen=True)
class Scale:
    """What a difference is multiplied with (power 1) or divided by (power -1) to have the variance 1."""

    node: fx.Node
    power: int
    spread: Reduction
    eps: float
    nodes: frozenset[fx.Node]
    objection: Objection | None = None


def layer_norm(call: Call) -> Iterator[Reading]:
    """Yield each LayerNorm around a call of a root, or of a standard deviation: that with weight and bias first."""
    for scale in _deviations(call) if call.operator.name == "std" else _roots(call):
        expansion = Expansion((scale.spread.of, scale.node, *_means_of(scale.spread)))
        found = [_reading(scale, result, expansion.of(result)) for result in results_after(scale.node)]
        yield from reversed([reading for reading in found if reading is not None])


def _means_of(spread: Reduction) -> Iterator[fx.Node]:
    """Yield the nodes that are the mean of what the variance is taken of, over the same dimensions."""
    reducing = [user for user in spread.of.users if operator_of(user) in _reducing()]
    near = [*reducing, *(user for one in reducing for user in one.users)]
    for node in dict.fromkeys([*near, *(user for one in near for user in one.users)]):
        found = mean(node)
        if found is not None and (found.of, found.dims) == (spread.of, spread.dims):
            yield node


def _reducing() -> tuple[Operator, ...]:
    return tuple(operators()[name] for name in ("mean", "sum", "var_mean"))


def _roots(call: Call) -> Iterator[Scale]:
    power = _power(call)
    for node in operands_before(call["input"]) if power else ():
        spread = variance(node)
        if spread is None:
            continue
        expanded = Expansion((node,)).of(call["input"])
        eps = _added(expanded, node)
        if eps is not None:
            nodes = spread.nodes | expanded.nodes | {call.node}
            yield Scale(call.node, power, spread, eps, nodes, _objection_to_variance(call.node, spread))


def _deviations(call: Call) -> Iterator[Scale]:
    spread = deviation(call.node)
    for result in results_after(call.node) if spread is not None else ():
        expanded = Expansion((call.node,)).of(result)
        eps = _added(expanded, call.node)
        if eps is None or spread is None:
            continue
        objection = _objection_to_variance(call.node, spread)
        if objection is None and eps:
            reason = f"{result} adds {eps:g} to the standard deviation, where LayerNorm adds eps to the variance"
            objection = Objection("variance", reason)
        yield Scale(result, -1, spread, 0.0, spread.nodes | expanded.nodes, objection)


def _power(call: Call) -> int:
    """Return whether the call's result is to be multiplied with (1) or divided by (-1); 0 if it is no square root."""
    if call.operator.name == "pow":
        exponent = number_of(call["exponent"])
        return {0.5: -1, -0.5: 1}.get(exponent, 0) if exponent is not None else 0
    return 1 if call.operator.name == "rsqrt" else -1


def _added(expanded: Expanded, node: fx.Node) -> float | None:
    """Return the number that is added to a node, or None if something else is done to it."""
    terms = dict(expanded.polynomial.terms)
    eps = terms.pop(ONE, 0.0)
    return eps if terms == {frozenset({(node, 1)}): 1.0} and eps >= 0 else None


def _objection_to_variance(node: fx.Node, spread: Reduction) -> Objection | None:
    if spread.correction == 0:
        return None
    reason = f"{node} is made of a variance with correction {spread.correction:g}, and that of LayerNorm has none"
    return Objection("variance", reason)


def _reading(scale: Scale, result: fx.Node, outside: Expanded) -> Reading | None:
    """Read a result as scale · (x - mean) · weight + bias, where weight and bias may be missing."""
    x, terms = scale.spread.of, dict(outside.polynomial.terms)
    scaled: Monomial = frozenset({(x, 1), (scale.node, scale.power)})
    first = next((monomial for monomial in terms if monomial >= scaled), None)
    if first is None or terms.pop(first) != 1.0:
        return None
    second = next((monomial for monomial in terms if (scale.node, scale.power) in monomial), None)
    if second is None or terms.pop(second) != -1.0:
        return None
    weight, others = _single(first - scaled), second - first
    centre = next((mean(node) for node, power in others if power == 1), None) if len(others) == 1 else None
    if centre is None or (centre.of, centre.dims) != (x, scale.spread.dims) or second - others != first - {(x, 1)}:
        return None
    bias = _single(next(iter(terms))) if len(terms) == 1 and set(terms.values()) == {1.0} else None
    if (first != scaled and weight is None) or (terms and bias is None):
        return None
    nodes = outside.nodes | centre.nodes | scale.nodes
    operands = {name: node for name, node in (("x", x), ("weight", weight), ("bias", bias)) if node is not None}
    objection = scale.objection or _objection_to_shapes(scale.spread, operands) or float16_objection(x)
    return Reading(result, nodes, operands, _layer_norm(size_of(scale.spread), scale.eps), objection)


def _single(monomial: Monomial) -> fx.Node | None:
    """Return the one value that a monomial is, or None."""
    values = list(monomial)
    return values[0][0] if len(values) == 1 and values[0][1] == 1 else None


def _objection_to_shapes(spread: Reduction, operands: dict[str, fx.Node]) -> Objection | None:
    facts = {name: tensor_facts(node) for name, node in operands.items()}
    shapes = {name: known.shape for name, known in facts.items() if known is not None}
    rank, normalized = len(shapes["x"]), size_of(spread)
    if spread.dims != tuple(range(rank - len(normalized), rank)):
        reason = f"{spread.of} of shape {shapes['x']} is normalised over the dimensions {spread.dims}"
        return Objection("shape", f"{reason}, and LayerNorm takes the last ones")
    for name in ("weight", "bias"):
        if name in operands and shapes.get(name) != normalized:
            reason = f"{operands[name]} has shape {shapes.get(name)}, and LayerNorm takes a {name} of {normalized}"
            return Objection("shape", reason)
    return None


def _layer_norm(shape: tuple[int, ...], eps: float) -> Callable[..., torch.Tensor]:
    def replacement(
        x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        return F.layer_norm(x, shape, weight, bias, eps)

    return replacement
