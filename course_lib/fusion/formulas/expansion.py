"""Read a node as a polynomial in chosen values: through sums, products, quotients and powers, however spelt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from torch import fx

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.formulas.polynomial import MAX_POWER, Polynomial, TooLargeError
from course_lib.fusion.operands import number_of

MAX_DEPTH = 16  # of arithmetic below a node; the longest spelling that we know has 9


@dataclass(frozen=True)
class Expanded:
    """A polynomial, and the nodes that compute it from its values."""

    polynomial: Polynomial
    nodes: frozenset[fx.Node] = frozenset()


class Expansion:
    """Reads nodes as polynomials in `chosen` values. What does not depend on a chosen value is a value of its own."""

    def __init__(self, chosen: Iterable[fx.Node]) -> None:
        self._chosen = frozenset(chosen)
        self._known: dict[fx.Node, Expanded] = {}

    def of(self, value: object, depth: int = 0) -> Expanded:
        """Return what an argument is; raise `TooLargeError` if it is no polynomial of a size that we look for."""
        number = number_of(value)
        if number is not None:
            return Expanded(Polynomial.number(number))
        if not isinstance(value, fx.Node) or depth > MAX_DEPTH:
            raise TooLargeError
        if value not in self._known:
            self._known[value] = self._read(value, depth)
        return self._known[value]

    def _read(self, node: fx.Node, depth: int) -> Expanded:
        itself = Expanded(Polynomial.of(node))
        if node in self._chosen:
            return itself
        call = read_call(node)
        if call is None or call.operator.name not in _ARITHMETIC:
            return itself
        try:
            operands = {name: self.of(call[name], depth + 1) for name in _TENSORS[call.operator.name]}
            polynomial = _ARITHMETIC[call.operator.name](call, {n: one.polynomial for n, one in operands.items()})
        except TooLargeError:
            return itself
        if not polynomial.values() & self._chosen:
            return itself if polynomial.as_number() is None else Expanded(polynomial)
        return Expanded(polynomial, frozenset({node}).union(*(one.nodes for one in operands.values())))


def arithmetic_operands(node: fx.Node) -> list[fx.Node]:
    """Return the operands of a sum, product, quotient or power that are nodes; none for any other node."""
    call = read_call(node)
    if call is None or call.operator.name not in _ARITHMETIC:
        return []
    return [value for name in _TENSORS[call.operator.name] if isinstance(value := call[name], fx.Node)]


Operands = Mapping[str, Polynomial]


def _sum(call: Call, given: Operands) -> Polynomial:
    return given["input"] + given["other"] * _factor(call["alpha"])


def _difference(call: Call, given: Operands) -> Polynomial:
    return given["input"] + given["other"] * _factor(call["alpha"]) * Polynomial.number(-1.0)


def _product(call: Call, given: Operands) -> Polynomial:
    return given["input"] * given["other"]


def _quotient(call: Call, given: Operands) -> Polynomial:
    if call["rounding_mode"] is not None:
        raise TooLargeError
    return given["input"] * given["other"].power(-1)


def _power(call: Call, given: Operands) -> Polynomial:
    exponent = given["exponent"].as_number()
    if exponent is None or not exponent.is_integer() or not 1 <= abs(exponent) <= MAX_POWER:
        raise TooLargeError
    return given["input"].power(int(exponent))


def _scaled_product(call: Call, given: Operands) -> Polynomial:
    return given["input"] + given["tensor1"] * given["tensor2"] * _factor(call["value"])


def _scaled_quotient(call: Call, given: Operands) -> Polynomial:
    return given["input"] + given["tensor1"] * given["tensor2"].power(-1) * _factor(call["value"])


def _factor(value: object) -> Polynomial:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]  # now a number
        raise TooLargeError
    return Polynomial.number(float(value))  # type: ignore[arg-type]  # the same


_ARITHMETIC: Mapping[str, Callable[[Call, Operands], Polynomial]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "neg": lambda call, given: given["input"] * Polynomial.number(-1.0),
    "square": lambda call, given: given["input"].power(2),
    "reciprocal": lambda call, given: given["input"].power(-1),
    "pow": _power,
    "addcmul": _scaled_product,
    "addcdiv": _scaled_quotient,
}
_TENSORS: Mapping[str, tuple[str, ...]] = {
    "neg": ("input",),
    "square": ("input",),
    "reciprocal": ("input",),
    "pow": ("input", "exponent"),
    "addcmul": ("input", "tensor1", "tensor2"),
    "addcdiv": ("input", "tensor1", "tensor2"),
} | dict.fromkeys(("add", "sub", "mul", "div"), ("input", "other"))
