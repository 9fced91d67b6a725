"""Read a node as a polynomial in chosen values, through sums, products, quotients and powers in all spellings."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from torch import fx

from course_lib.fusion.algebra.polynomial import (
    MAX_POWER,
    ONE,
    Polynomial,
    TooLargeError,
    add,
    multiply,
    number,
    power,
    values_of,
    variable,
)
from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.constants import number_of

MAX_DEPTH = 16  # of arithmetic below a node; the longest spelling that we know has 9
MAX_NODES = 24  # that are visited from a node, for the same reason


@dataclass(frozen=True)
class Expanded:
    """A polynomial, and the nodes that compute it from its values."""

    polynomial: Polynomial
    nodes: frozenset[fx.Node] = frozenset()


class Expansion:
    """Nodes as polynomials in `chosen` values. What does not depend on a chosen value is a value of its own."""

    def __init__(self, chosen: Iterable[fx.Node]) -> None:
        self._chosen = frozenset(chosen)
        self._known: dict[fx.Node, Expanded] = {}

    def of(self, value: object, depth: int = 0) -> Expanded:
        """Return the polynomial of an argument; raise `TooLargeError` if it has none."""
        found = number_of(value)
        if found is not None:
            return Expanded(number(found))
        if not isinstance(value, fx.Node) or depth > MAX_DEPTH:
            raise TooLargeError
        if value not in self._known:
            self._known[value] = self._read(value, depth)
        return self._known[value]

    def _read(self, node: fx.Node, depth: int) -> Expanded:
        itself = Expanded(variable(node))
        call = None if node in self._chosen else read_call(node)
        if call is None or call.operator.name not in _ARITHMETIC:
            return itself
        names, compute = _ARITHMETIC[call.operator.name]
        try:
            operands = [self.of(call[name], depth + 1) for name in names]
            polynomial = compute(call, *(one.polynomial for one in operands))
        except TooLargeError:
            return itself
        values = values_of(polynomial)
        if self._chosen.isdisjoint(values):
            return itself if values else Expanded(polynomial)
        return Expanded(polynomial, frozenset({node}).union(*(one.nodes for one in operands)))


def nodes_before(value: object) -> list[fx.Node]:
    """Return the nodes that arithmetic leads to from an argument backward, itself first if it is a node."""
    reached = [value] if isinstance(value, fx.Node) else []
    for node in reached:  # grows while it is read
        if len(reached) < MAX_NODES:
            reached += [operand for operand in _operands(node) if operand not in reached]
    return reached


def nodes_after(node: fx.Node) -> list[fx.Node]:
    """Return the nodes that arithmetic leads to from `node`, itself first, the nearer before the farther."""
    reached = [node]
    for one in reached:
        if len(reached) < MAX_NODES:
            reached += [user for user in one.users if user not in reached and one in _operands(user)]
    return reached


def is_arithmetic(node: fx.Node) -> bool:
    """Return whether a node is a sum, product, quotient or power."""
    call = read_call(node)
    return call is not None and call.operator.name in _ARITHMETIC


def _operands(node: fx.Node) -> list[fx.Node]:
    call = read_call(node)
    if call is None or call.operator.name not in _ARITHMETIC:
        return []
    values = [call[name] for name in _ARITHMETIC[call.operator.name][0]]
    return [value for value in values if isinstance(value, fx.Node)]


def _quotient(call: Call, first: Polynomial, second: Polynomial) -> Polynomial:
    if call["rounding_mode"] is not None:
        raise TooLargeError
    return multiply(first, _reciprocal(call["other"], second))


def _reciprocal(value: object, polynomial: Polynomial) -> Polynomial:
    """Return the reciprocal; that of a sum is the reciprocal of one value, the sum."""
    return power(variable(value) if isinstance(value, fx.Node) and len(polynomial) > 1 else polynomial, -1)


def _power(call: Call, base: Polynomial, exponent: Polynomial) -> Polynomial:
    found = exponent.get(ONE, 0.0) if exponent.keys() == {ONE} else 0.0
    if not found.is_integer() or not 1 <= abs(found) <= MAX_POWER:
        raise TooLargeError
    return power(base, int(found))


def _factor(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]  # now a number
        raise TooLargeError
    return float(value)  # type: ignore[arg-type]  # the same


_PAIR, _ONE, _THREE = ("input", "other"), ("input",), ("input", "tensor1", "tensor2")

# The operands of each operator that are polynomials, and what it computes of them.
_ARITHMETIC: Mapping[str, tuple[tuple[str, ...], Callable[..., Polynomial]]] = {
    "add": (_PAIR, lambda call, a, b: add(a, b, _factor(call["alpha"]))),
    "sub": (_PAIR, lambda call, a, b: add(a, b, -_factor(call["alpha"]))),
    "mul": (_PAIR, lambda call, a, b: multiply(a, b)),
    "div": (_PAIR, _quotient),
    "neg": (_ONE, lambda call, a: multiply(a, number(-1.0))),
    "square": (_ONE, lambda call, a: power(a, 2)),
    "reciprocal": (_ONE, lambda call, a: _reciprocal(call["input"], a)),
    "pow": (("input", "exponent"), _power),
    "addcmul": (_THREE, lambda call, a, b, c: add(a, multiply(b, c), _factor(call["value"]))),
    "addcdiv": (
        _THREE,
        lambda call, a, b, c: add(a, multiply(b, _reciprocal(call["tensor2"], c)), _factor(call["value"])),
    ),
}
