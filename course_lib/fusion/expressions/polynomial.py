"""Read nodes as polynomials: sums of products of values, which do not depend on the order and spelling of a program.

`0.5 * x * (1 + e)`, `x * (0.5 + e / 2)` and `(x + x * e) * 0.5` are one polynomial: 0.5 · x + 0.5 · x · e.

A value may be an atom: an elementwise function, a root, or a reduction over dimensions. A reduction is an atom if it
keeps its dimensions, with length 1, or if `unsqueeze` restores them. Different spellings are read as the same atom:
`x.max(-1, keepdim=True)[0]` is `amax`, `rsqrt` is `sqrt` to the power -1, and a sum is n times the mean.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import fx

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.expressions.casts import read_value
from course_lib.fusion.operands import number_of, tensor_facts

MAX_TERMS = 12  # the longest formula that we look for has four
MAX_POWER = 4
MAX_DEPTH = 16  # of arithmetic below a node; the longest spelling that we know has 9
MAX_NODES = 24  # that are visited from a node, for the same reason

Monomial = frozenset[tuple[fx.Node, int]]  # values with their exponents, which may be negative
Polynomial = Mapping[Monomial, float]  # each monomial with its coefficient
ONE: Monomial = frozenset()  # the monomial of a plain number


class TooLargeError(Exception):
    """An argument is not a polynomial, or its polynomial is larger than any formula that we look for."""


class Expansion:
    """Express nodes as polynomials in the `chosen` values. A node that depends on none of them is one more variable.

    >>> x, e, *_, result, _ = fx.symbolic_trace(lambda x, e: (x + x.mul(e)) / 2).graph.nodes
    >>> [written(coefficient, monomial) for monomial, coefficient in Expansion((x, e)).of(result).items()]
    ['0.5·x', '0.5·e·x']
    """

    def __init__(self, chosen: Iterable[fx.Node]) -> None:
        self._chosen = frozenset(chosen)
        self._known: dict[fx.Node, Polynomial] = {}

    def of(self, value: object, depth: int = 0) -> Polynomial:
        """Return the polynomial of an argument; raise `TooLargeError` if it has none."""
        number = number_of(value)
        if number is not None:
            return {ONE: number}
        if not isinstance(value, fx.Node) or depth > MAX_DEPTH:
            raise TooLargeError
        if value not in self._known:
            self._known[value] = self._read(value, depth)
        return self._known[value]

    def _read(self, node: fx.Node, depth: int) -> Polynomial:
        call = None if node in self._chosen else read_value(node)
        if call is None or call.operator.name not in _ARITHMETIC:
            return _variable(node)
        names, compute = _ARITHMETIC[call.operator.name]
        try:
            polynomial = compute(call, *(self.of(call[name], depth + 1) for name in names))
        except TooLargeError:
            return _variable(node)
        values = values_of(polynomial)
        return _variable(node) if values and self._chosen.isdisjoint(values) else polynomial


def values_of(polynomial: Polynomial) -> list[fx.Node]:
    """Return the distinct values of a polynomial."""
    return list(dict.fromkeys(value for monomial in polynomial for value, _ in sorted(monomial)))


def written(coefficient: float, monomial: Monomial) -> str:
    """Return a term as text, such as `0.5·x^2`."""
    powers = sorted((str(value), exponent) for value, exponent in monomial)
    return f"{coefficient:.9g}" + "".join(f"·{name}" if one == 1 else f"·{name}^{one}" for name, one in powers)


def arithmetic_operands(node: fx.Node) -> list[object]:
    """Return the operands of a sum, product, quotient, power or cast; an empty list for any other node."""
    call = read_value(node)
    if call is None or call.operator.name not in _ARITHMETIC:
        return []
    return [call[name] for name in _ARITHMETIC[call.operator.name][0]]


def nodes_before(value: object) -> list[fx.Node]:
    """Return the nodes from which arithmetic computes an argument; if the argument is a node, it comes first."""
    reached = [value] if isinstance(value, fx.Node) else []
    for node in reached:  # grows while it is read
        if len(reached) < MAX_NODES:
            operands = [operand for operand in arithmetic_operands(node) if isinstance(operand, fx.Node)]
            reached += [operand for operand in operands if operand not in reached]
    return reached


def nodes_after(node: fx.Node) -> list[fx.Node]:
    """Return `node` and the nodes that arithmetic computes from it, nearest first."""
    reached = [node]
    for one in reached:
        if len(reached) < MAX_NODES:
            reached += [user for user in one.users if user not in reached and one in arithmetic_operands(user)]
    return reached


def _variable(node: fx.Node) -> Polynomial:
    return {frozenset({(node, 1)}): 1.0}


def _add(first: Polynomial, second: Polynomial, factor: object = 1.0) -> Polynomial:
    """Return `first + factor * second`. A value that cancels keeps a term of factor 0, because 0 · NaN is not 0."""
    if type(factor) not in (int, float) or not math.isfinite(factor):  # type: ignore[arg-type]  # now a number
        raise TooLargeError
    terms = dict(first)
    for monomial, coefficient in second.items():
        terms[monomial] = terms.get(monomial, 0.0) + float(factor) * coefficient  # type: ignore[arg-type]  # the same
    return _limited({monomial: coefficient for monomial, coefficient in terms.items() if coefficient or monomial})


def _multiply(first: Polynomial, second: Polynomial) -> Polynomial:
    terms: dict[Monomial, float] = {}
    for one, coefficient in first.items():
        for other, factor in second.items():
            exponents = dict(one)
            for value, exponent in other:
                known = exponents.get(value, 0)
                if known * exponent < 0 or abs(known + exponent) > MAX_POWER:  # x / x is not 1 where x is 0
                    raise TooLargeError
                exponents[value] = known + exponent
            monomial = frozenset(exponents.items())
            terms[monomial] = terms.get(monomial, 0.0) + coefficient * factor
    return _limited(terms)


def _limited(terms: Polynomial) -> Polynomial:
    if len(terms) > MAX_TERMS:
        raise TooLargeError
    return terms


def _reciprocal(value: object, polynomial: Polynomial) -> Polynomial:
    """Return the reciprocal of a term; a sum is treated as one value."""
    if len(polynomial) > 1 and isinstance(value, fx.Node):
        polynomial = _variable(value)
    if len(polynomial) != 1 or 0.0 in polynomial.values():
        raise TooLargeError
    ((monomial, coefficient),) = polynomial.items()
    return {frozenset((one, -exponent) for one, exponent in monomial): 1.0 / coefficient}


def _divide(call: Call, first: Polynomial, second: Polynomial) -> Polynomial:
    if call["rounding_mode"] is not None:
        raise TooLargeError
    return _multiply(first, _reciprocal(call["other"], second))


def _power(call: Call, base: Polynomial, exponent: Polynomial) -> Polynomial:
    number = exponent.get(ONE, 0.0) if exponent.keys() == {ONE} else 0.0
    if not number.is_integer() or not 1 <= abs(number) <= MAX_POWER:
        raise TooLargeError
    factor = base if number > 0 else _reciprocal(call["input"], base)
    return functools.reduce(_multiply, [factor] * int(abs(number)))


# For each operator, the operands that are polynomials, and the function that computes its polynomial from them.
_PAIR, _THREE = ("input", "other"), ("input", "tensor1", "tensor2")
_ARITHMETIC: Mapping[str, tuple[tuple[str, ...], Callable[..., Polynomial]]] = {
    "add": (_PAIR, lambda call, a, b: _add(a, b, call["alpha"])),
    "sub": (_PAIR, lambda call, a, b: _add(a, _add({}, b, call["alpha"]), -1.0)),
    "mul": (_PAIR, lambda call, a, b: _multiply(a, b)),
    "div": (_PAIR, _divide),
    "cast": (("input",), lambda call, a: a),
    "neg": (("input",), lambda call, a: _add({}, a, -1.0)),
    "square": (("input",), lambda call, a: _multiply(a, a)),
    "reciprocal": (("input",), lambda call, a: _reciprocal(call["input"], a)),
    "pow": (("input", "exponent"), _power),
    "addcmul": (_THREE, lambda call, a, b, c: _add(a, _multiply(b, c), call["value"])),
    "addcdiv": (_THREE, lambda call, a, b, c: _add(a, _multiply(b, _reciprocal(call["tensor2"], c)), call["value"])),
}


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
    """Return the number that a variance subtracts from the number of elements, or None if it is unknown."""
    if "unbiased" not in call.arguments:
        return 0.0
    if call["correction"] is not None:
        return number_of(call["correction"])
    return float(call["unbiased"]) if isinstance(call["unbiased"], bool) else None


def _sizes(dim: object, of: object) -> dict[int, int]:
    """Return the length of each reduced dimension, counted from the front; empty if the lengths are unknown."""
    facts = tensor_facts(of) if isinstance(of, fx.Node) else None
    if facts is None:
        return {}
    rank = len(facts.shape)
    given = range(rank) if dim is None or dim == () else dim if isinstance(dim, Sequence) else (dim,)
    if not all(type(one) is int and -rank <= one < rank for one in given):
        return {}
    return {one: facts.shape[one] for one in sorted(one % rank for one in given)}  # type: ignore[operator]  # integers
