"""Read a node as a mean, a maximum, a sum or a variance over dimensions that stay, with length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.formulas.expansion import Expansion
from course_lib.fusion.formulas.polynomial import Monomial
from course_lib.fusion.formulas.reading import compared, operands_before, tolerance
from course_lib.fusion.operands import number_of, tensor_facts


@dataclass(frozen=True)
class Reduction:
    """A value reduced over dimensions."""

    of: fx.Node
    dims: tuple[int, ...]  # counted from the front, in ascending order
    nodes: frozenset[fx.Node]  # what computes it
    correction: float = 0.0  # of a variance: 0 if it is biased, 1 if it is not


def mean(value: object) -> Reduction | None:
    """Return the mean that a value is: `x.mean(-1, keepdim=True)`, or a sum divided by the number of its terms."""
    return _kept(value, "mean") or _of_pair(value, "var_mean", 1) or _sum_divided(value)


def total(value: object) -> Reduction | None:
    """Return the sum that a value is."""
    return _kept(value, "sum")


def maximum(value: object) -> Reduction | None:
    """Return the maximum that a value is, also detached: softmax does not depend on what is subtracted."""
    call = read_call(value)
    if call is not None and call.operator.name == "detach":
        return _also(maximum(call["input"]), call.node)
    return _kept(value, "amax") or _of_pair(value, "max", 0)


def variance(value: object) -> Reduction | None:
    """Return the variance that a value is: an operator's, or the mean of squared differences from the mean."""
    return _kept(value, "var") or _of_pair(value, "var_mean", 0) or _mean_of_squares(value)


def deviation(value: object) -> Reduction | None:
    """Return the standard deviation that a value is."""
    return _kept(value, "std")


def size_of(reduction: Reduction) -> tuple[int, ...]:
    """Return the lengths of the dimensions that are reduced."""
    facts = tensor_facts(reduction.of)
    assert facts is not None, "a reduction is read only where the rank is known"
    return tuple(facts.shape[dim] for dim in reduction.dims)


def _kept(value: object, name: str) -> Reduction | None:
    """Return a reduction that keeps its dimensions, or is given its one dimension back by `unsqueeze`."""
    call = read_call(value)
    if call is not None and call.operator.name == "unsqueeze":
        inner = read_call(call["input"])
        found = None if inner is None else _reduction(inner, name, keepdim=False)
        return _also(found, call.node) if found is not None and _dims(call["dim"], found.of) == found.dims else None
    return None if call is None else _reduction(call, name, keepdim=True)


def _of_pair(value: object, name: str, index: int) -> Reduction | None:
    """Return the part of a pair that a value is: `x.max(-1, keepdim=True)[0]`, `.values`, or with `unsqueeze`."""
    call = read_call(value)
    if call is None:
        return None
    if call.operator.name == "unsqueeze":
        found = _part(call["input"], name, index, keepdim=False)
        return _also(found, call.node) if found is not None and _dims(call["dim"], found.of) == found.dims else None
    return _part(value, name, index, keepdim=True)


def _part(value: object, name: str, index: int, *, keepdim: bool) -> Reduction | None:
    call = read_call(value)
    if call is None or call.operator.name not in ("getitem", "getattr"):
        return None
    wanted = index if call.operator.name == "getitem" else "values"
    pair = read_call(call["input"])
    if pair is None or list(call.arguments.values())[1] != wanted or (wanted == "values" and name != "max"):
        return None
    return _also(_reduction(pair, name, keepdim=keepdim), call.node)


def _reduction(call: Call, name: str, *, keepdim: bool) -> Reduction | None:
    of, correction = call.arguments.get("input"), _correction(call)
    if call.operator.name != name or call["keepdim"] is not keepdim or call.arguments.get("dtype") is not None:
        return None
    dims = _dims(call["dim"], of)
    if not isinstance(of, fx.Node) or not dims or correction is None:
        return None
    return Reduction(of, dims, frozenset({call.node}), correction)


def _correction(call: Call) -> float | None:
    """Return what a variance subtracts from the number of elements; None if it is not known."""
    if "unbiased" not in call.arguments:
        return 0.0
    if call["correction"] is not None:
        return number_of(call["correction"])
    return float(call["unbiased"]) if isinstance(call["unbiased"], bool) else None


def _dims(dim: object, of: object) -> tuple[int, ...]:
    """Return dimensions counted from the front; none if they are unknown or do not fit."""
    facts = tensor_facts(of) if isinstance(of, fx.Node) else None
    given = dim if isinstance(dim, Sequence) else (dim,)
    if facts is None:
        return ()
    rank = len(facts.shape)
    if dim is None or dim == ():
        return tuple(range(rank))
    if not all(type(one) is int and -rank <= one < rank for one in given):
        return ()
    return tuple(sorted(one % rank for one in given))  # type: ignore[operator]  # integers, as just seen


def _also(reduction: Reduction | None, node: fx.Node) -> Reduction | None:
    return None if reduction is None else replace(reduction, nodes=reduction.nodes | {node})


def _sum_divided(value: object) -> Reduction | None:
    for node in operands_before(value):
        found = total(node)
        if found is None or node is value:
            continue
        expanded = Expansion((node,)).of(value)
        share: dict[Monomial, float] = {frozenset({(node, 1)}): 1.0 / max(1, math.prod(size_of(found)))}
        if compared(expanded.polynomial, share, _allowed(found.of)) == []:
            return replace(found, nodes=found.nodes | expanded.nodes)
    return None


def _mean_of_squares(value: object) -> Reduction | None:
    squares = mean(value)
    for node in operands_before(squares.of) if squares is not None else ():
        centre = mean(node)
        if squares is None or centre is None or centre.dims != squares.dims:
            continue
        x = centre.of
        expanded = Expansion((x, node)).of(squares.of)
        wanted: dict[Monomial, float] = {
            frozenset({(x, 2)}): 1.0,
            frozenset({(x, 1), (node, 1)}): -2.0,
            frozenset({(node, 2)}): 1.0,
        }
        if compared(expanded.polynomial, wanted, _allowed(x)) == []:
            return Reduction(x, centre.dims, squares.nodes | expanded.nodes | centre.nodes)
    return None


def _allowed(node: fx.Node) -> float:
    facts = tensor_facts(node)
    return tolerance(facts.dtype if facts is not None else torch.float32)
