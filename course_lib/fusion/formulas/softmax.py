"""Softmax, written as exp(x - max x) / Σ exp(x - max x).

Without the maximum it is the same real function, but exp overflows from 89 on (at fp32), and the program gives NaN
where softmax does not. So `exp(x) / exp(x).sum(...)` is left alone. Its logarithm is left alone as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import fx

from course_lib.fusion.calls import Call
from course_lib.fusion.formulas.expansion import Expansion
from course_lib.fusion.formulas.polynomial import Monomial
from course_lib.fusion.formulas.reading import Reading, operands_before, results_after
from course_lib.fusion.formulas.reductions import Reduction, maximum, total
from course_lib.fusion.operands import tensor_facts
from course_lib.fusion.rules import Objection


def softmax(call: Call) -> Iterator[Reading]:
    """Yield the softmax around a call of exp, or what lacks only the maximum."""
    shifts = list(_shifts(call))
    for sums in _sums_of(call.node):
        fitting = [(shift, nodes) for shift, nodes in shifts if shift.dims == sums[1].dims]
        for quotient, nodes in _quotients(call.node, *sums):
            if fitting:
                shift, inside = fitting[0]
                yield _reading(quotient, shift.of, sums[1].dims, nodes | inside)
            elif isinstance(call["input"], fx.Node):
                reason = f"{call.node} overflows where softmax would not: the maximum over {sums[1].dims} stays in it"
                yield _reading(quotient, call["input"], sums[1].dims, nodes, Objection("overflow", reason))


def _shifts(call: Call) -> Iterator[tuple[Reduction, frozenset[fx.Node]]]:
    """Yield each maximum of x that exp(x - maximum) subtracts, with the nodes that do so."""
    for node in operands_before(call["input"]):
        found = maximum(node)
        if found is None:
            continue
        expanded = Expansion((found.of, node)).of(call["input"])
        wanted: dict[Monomial, float] = {frozenset({(found.of, 1)}): 1.0, frozenset({(node, 1)}): -1.0}
        if expanded.polynomial.terms == wanted:
            yield found, expanded.nodes | found.nodes


def _sums_of(exponential: fx.Node) -> Iterator[tuple[fx.Node, Reduction]]:
    """Yield each sum of the exponential, as the node that has its dimensions."""
    for user in exponential.users:
        for node in (user, *user.users):
            found = total(node)
            if found is not None and found.of is exponential and len(found.dims) == 1:
                yield node, found


def _quotients(
    exponential: fx.Node, total_node: fx.Node, total_read: Reduction
) -> Iterator[tuple[fx.Node, frozenset[fx.Node]]]:
    expansion = Expansion((exponential, total_node))
    wanted: dict[Monomial, float] = {frozenset({(exponential, 1), (total_node, -1)}): 1.0}
    for result in results_after(total_node):
        outside = expansion.of(result)
        if outside.polynomial.terms == wanted:
            yield result, outside.nodes | total_read.nodes | {exponential}


def _reading(
    result: fx.Node, x: fx.Node, dims: tuple[int, ...], nodes: frozenset[fx.Node], objection: Objection | None = None
) -> Reading:
    facts = tensor_facts(x)
    dim = dims[0] - len(facts.shape) if facts is not None else dims[0]  # -1 for the last, as people write it
    return Reading(result, nodes, {"x": x}, _softmax_over(dim), objection)


def _softmax_over(dim: int) -> Callable[..., torch.Tensor]:
    return lambda x: torch.softmax(x, dim)
