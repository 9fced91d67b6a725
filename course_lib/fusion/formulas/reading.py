"""What a recogniser gives: nodes that are, or nearly are, a formula, and the call that means the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import fx

from course_lib.fusion.formulas.expansion import arithmetic_operands
from course_lib.fusion.formulas.polynomial import Monomial, Polynomial, shown
from course_lib.fusion.operands import tensor_facts
from course_lib.fusion.rules import Objection

MAX_RESULTS = 16  # nodes of arithmetic around the call that a formula is known by; the longest spelling has 9


@dataclass(frozen=True)
class Reading:
    """One way to read a formula into the graph."""

    result: fx.Node
    nodes: frozenset[fx.Node]  # what computes it, the result among them
    operands: Mapping[str, object]  # by the names that `replacement` has for them
    replacement: Callable[..., torch.Tensor]
    objection: Objection | None = None  # why it only looks like the formula


def results_after(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the nodes that arithmetic leads to from `node`, itself the first, the nearer before the farther."""
    reached = [node]
    for one in reached:  # grows while it is read
        yield one
        if len(reached) < MAX_RESULTS:
            reached += [user for user in one.users if user not in reached and one in arithmetic_operands(user)]


def operands_before(value: object) -> Iterator[fx.Node]:
    """Yield the nodes that arithmetic leads to from an argument backward, itself the first if it is a node."""
    reached = [value] if isinstance(value, fx.Node) else []
    for one in reached:
        yield one
        if len(reached) < MAX_RESULTS:
            reached += [operand for operand in arithmetic_operands(one) if operand not in reached]


def tolerance(dtype: torch.dtype) -> float:
    """Return how far from its value, relatively, a literal of a formula may be.

    Programs write √½ as `0.70710678`. What the literal lacks must be less than what the formula's own roundings do,
    so that no result can tell. At fp32 that is 4 units of rounding, since each formula rounds at least so often; seven
    digits are enough. 16-bit types compute with fp32 literals. At fp64 it is 16 units, because some literals are made
    of others, such as `math.sqrt(2 / math.pi) * 0.044715`.
    """
    return 16 * torch.finfo(torch.float64).eps if dtype == torch.float64 else 4 * torch.finfo(torch.float32).eps


def compared(found: Polynomial, wanted: Mapping[Monomial, float], allowed: float) -> list[str] | None:
    """Return what differs, in words, if the terms are those wanted; None if they are others."""
    if found.terms.keys() != wanted.keys():
        return None
    return [
        f"{coefficient:.9g}{shown(monomial)} where it has {wanted[monomial]:.9g}{shown(monomial)}"
        for monomial, coefficient in found.terms.items()
        if not abs(coefficient - wanted[monomial]) <= allowed * abs(wanted[monomial])
    ]


def literal_objection(result: fx.Node, name: str, differing: list[str]) -> Objection | None:
    """Object to a formula with other numbers than those of the operator it looks like."""
    if not differing:
        return None
    return Objection("literal", f"{result} looks like {name}, but has {' and '.join(differing)}")


def float16_objection(x: fx.Node) -> Objection | None:
    """Object to powers of float16 values: they overflow from 256 on, where the operator, in float32, does not."""
    facts = tensor_facts(x)
    if facts is None or facts.dtype != torch.float16:
        return None
    return Objection("dtype", f"powers of {x}, which is float16, may overflow where the operator does not")
