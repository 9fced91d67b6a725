"""Read a node as an atom of a formula: a function of elements, a root, or a reduction over dimensions.

A reduction is an atom if it keeps its dimensions, with length 1, or if `unsqueeze` restores them. Other spellings are
read as one: `x.max(-1, keepdim=True)[0]` is `amax`, `rsqrt` is `sqrt` to the power -1, a sum is n times the mean.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import fx

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.operands import number_of, tensor_facts


@dataclass(frozen=True)
class Atom:
    """A node as `scale * operator(argument) ** power`."""

    operator: str
    argument: object
    literals: Mapping[str, object] = field(default_factory=dict)
    power: int = 1
    scale: float = 1.0


def atoms_of(node: fx.Node) -> Iterator[Atom]:
    """Yield each way to read a node as an atom.

    >>> graph = fx.symbolic_trace(lambda x: x ** -0.5).graph
    >>> [(atom.operator, atom.power) for atom in atoms_of(list(graph.nodes)[1])]
    [('sqrt', -1)]
    """
    call = read_call(node)
    if call is None:
        return
    name, power = call.operator.name, number_of(call.arguments.get("exponent"))
    if name == "detach" and isinstance(call["input"], fx.Node):  # the gradient of softmax ignores its maximum
        yield from (atom for atom in atoms_of(call["input"]) if atom.operator == "amax")
    elif name in ("sqrt", "rsqrt") or (name == "pow" and power in (0.5, -0.5)):
        yield Atom("sqrt", call["input"], power=-1 if name == "rsqrt" or power == -0.5 else 1)
    elif name in _FUNCTIONS:
        yield Atom(name, call["input"])
    else:
        yield from _reductions(call)


_FUNCTIONS = ("erf", "ndtr", "tanh", "sigmoid", "exp")
_WHOLE = "whole"
# The reductions, by the operator and the part of its result that the program takes.
_REDUCTIONS: Mapping[tuple[str, object], str] = {
    **{(name, _WHOLE): name for name in ("mean", "sum", "amax", "var", "std")},
    ("max", 0): "amax",
    ("max", "values"): "amax",
    ("var_mean", 0): "var",
    ("var_mean", 1): "mean",
}


def _reductions(call: Call) -> Iterator[Atom]:
    restored = call.operator.name == "unsqueeze"
    taking = read_call(call["input"]) if restored else call
    reducing: Call | None = taking
    part: object = _WHOLE
    if taking is not None and taking.operator.name in ("getitem", "getattr"):
        reducing, (_, part) = read_call(taking["input"]), taking.arguments.values()
    if reducing is None or not isinstance(part, int | str):
        return
    name = _REDUCTIONS.get((reducing.operator.name, part))
    if name is None or reducing["keepdim"] is not (not restored) or reducing.arguments.get("dtype") is not None:
        return
    of, correction = reducing["input"], _correction(reducing)
    sizes = _sizes(reducing["dim"], of)
    if not sizes or correction is None or (restored and _sizes(call["dim"], of) != sizes):
        return
    literals = {"dim": tuple(sizes), **({"correction": correction} if name in ("var", "std") else {})}
    yield Atom(name, of, literals)
    if name == "sum":
        yield Atom("mean", of, literals, scale=float(math.prod(sizes.values())))


def _correction(call: Call) -> float | None:
    """Return what a variance subtracts from the number of elements; None if it is not known."""
    if "unbiased" not in call.arguments:
        return 0.0
    if call["correction"] is not None:
        return number_of(call["correction"])
    return float(call["unbiased"]) if isinstance(call["unbiased"], bool) else None


def _sizes(dim: object, of: object) -> dict[int, int]:
    """Return the length of each dimension that is reduced, counted from the front; none if that is not known."""
    facts = tensor_facts(of) if isinstance(of, fx.Node) else None
    if facts is None:
        return {}
    rank = len(facts.shape)
    given = range(rank) if dim is None or dim == () else dim if isinstance(dim, Sequence) else (dim,)
    if not all(type(one) is int and -rank <= one < rank for one in given):
        return {}
    return {one: facts.shape[one] for one in sorted(one % rank for one in given)}  # type: ignore[operator]  # integers
