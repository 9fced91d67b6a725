"""Find a formula, written as plain PyTorch, in a graph, in any algebraic order, and compare its numbers.

`matching.Pattern` compares each call of a pattern with one call of the graph. `FormulaPattern` expands the arithmetic
of both sides and compares polynomials, so that order and spelling do not matter. Only an `Atom` is compared with a
node.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from course_lib.capture.fx_tracing import LineTracer
from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.expressions.casts import CAST, checks_of, read_value
from course_lib.fusion.expressions.polynomial import (
    ONE,
    Atom,
    Expansion,
    Monomial,
    Polynomial,
    TooLargeError,
    arithmetic_operands,
    atoms_of,
    nodes_after,
    nodes_before,
    values_of,
    written,
)
from course_lib.fusion.matching import Difference, Match
from course_lib.fusion.operands import number_of, tensor_facts


@dataclass(frozen=True)
class _Fit:
    """The nodes of the graph that are matched with values of a pattern so far."""

    values: Mapping[fx.Node, tuple[fx.Node, Atom | None]] = field(default_factory=dict)  # by the pattern's node
    operands: Mapping[str, object] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()

    def with_value(self, value: fx.Node, node: fx.Node, atom: Atom | None = None) -> "_Fit":
        """Return this fit with a node, read as the atom, for a value of the pattern."""
        return replace(self, values={**self.values, value: (node, atom)})

    def with_operand(self, parameter: object, found: object) -> "_Fit":
        """Return this fit with an operand for a parameter of the pattern."""
        assert isinstance(parameter, fx.Node), "a pattern takes dimensions and corrections as parameters"
        fit = replace(self, operands={**self.operands, str(parameter): found})
        return fit.with_value(parameter, found) if isinstance(found, fx.Node) else fit

    def in_nodes(self, monomial: Monomial, coefficient: float) -> tuple[Monomial, float]:
        """Return a term of the pattern as a term of the graph, with nodes instead of the pattern's values."""
        exponents = {}
        for value, exponent in monomial:
            node, atom = self.values[value]
            exponents[node] = exponent * (atom.power if atom else 1)
            coefficient /= (atom.scale if atom else 1.0) ** exponents[node]
        return frozenset(exponents.items()), coefficient


class FormulaPattern:
    """A formula as a function of PyTorch operators.

    Its parameters stand for any tensor. Those in `numbers` stand for a number that is added, which may be missing.

    >>> pattern = FormulaPattern(lambda x: x * torch.sigmoid(x))
    >>> nodes = list(fx.symbolic_trace(lambda x: (2 * x).mul(torch.special.expit(x)) / 2).graph.nodes)
    >>> [(match.anchor, dict(match.operands)) for match in pattern.matches(nodes[2]) if not match.differences]
    [(truediv, {'x': x})]
    """

    def __init__(self, function: Callable[..., object], numbers: Collection[str] = ()) -> None:
        self._graph = LineTracer(()).trace(function)
        (self._result,) = self._graph.output_node().args
        values = [node for node in self._graph.nodes if not arithmetic_operands(node)]
        self._calls = {node: call for node in values if (call := read_call(node)) is not None}
        self._expansion, self._numbers = Expansion(values), numbers
        self._last = list(self._calls)[-1]
        self.operator = self._calls[self._last].operator.name  # only calls of this operator can match

    def matches(self, node: fx.Node, writers: tuple[fx.Node, ...] = ()) -> Iterator[Match]:
        """Yield each match of the pattern whose last call is `node`; arithmetic may follow that call.

        A number that differs from the pattern's number is a difference of the match.
        """
        for fit in self._fit_call(self._last, node, _Fit()):
            for result in nodes_after(node):
                for found in self._fit(self._result, result, fit):
                    calls = tuple(_calls_between(result, found.operands))
                    yield Match(calls, found.operands, found.differences, writers)

    def _fit(self, pattern: object, value: object, fit: _Fit) -> Iterator[_Fit]:
        """Yield each fit in which a value of the graph equals the polynomial of a pattern node."""
        wanted = self._expansion.of(pattern)
        values = [one for one in values_of(wanted) if one.name not in self._numbers]
        unknown = [one for one in values if one not in fit.values]
        call = next((one for one in unknown if one.op != "placeholder"), None)
        if call is not None:
            for node in nodes_before(value):
                for found in self._fit_call(call, node, fit):
                    yield from self._fit(pattern, value, found)
        elif unknown == values:
            for node in sorted(nodes_before(value), key=_is_cast):  # an operator takes a value as it is, if it can
                yield from self._compare(wanted, value, fit.with_operand(values[0], node), unknown[1:])
        else:
            yield from self._compare(wanted, value, fit, unknown)

    def _fit_call(self, pattern: fx.Node, node: fx.Node, fit: _Fit) -> Iterator[_Fit]:
        """Yield each fit in which a node of the graph is a call of the pattern, or a sum in its divisor."""
        call = self._calls.get(pattern)
        if call is None:
            yield from (found.with_value(pattern, node) for found in self._fit(pattern, node, fit))
            return
        for atom in atoms_of(node):
            literals = {call.arguments.get(name): found for name, found in atom.literals.items()}
            differing = [one for one in literals if fit.operands.get(str(one), literals[one]) != literals[one]]
            if atom.operator == call.operator.name and not differing:
                found = fit.with_value(pattern, node, atom)
                for parameter, literal in literals.items():
                    found = found.with_operand(parameter, literal)
                yield from self._fit(call["input"], atom.argument, found)

    def _compare(self, wanted: Polynomial, value: object, fit: _Fit, unknown: Sequence[fx.Node]) -> Iterator[_Fit]:
        """Yield each fit in which a value equals the wanted polynomial; unknown parameters get the remaining nodes."""
        known = [fit.values[one][0] for one in values_of(wanted) if one in fit.values]
        try:
            polynomial = Expansion(known).of(value)
        except TooLargeError:
            return
        others = [one for one in values_of(polynomial) if one not in known]
        if not isinstance(value, fx.Node) or len(set(known)) < len(known) or len(others) != len(unknown):
            return
        number = next((one for one in values_of(wanted) if one.name in self._numbers), None)
        if number is not None:
            polynomial = {ONE: 0.0, **polynomial}
            fit = fit.with_operand(number, polynomial[ONE])
        for order in itertools.permutations(others):
            found = fit
            for parameter, node in zip(unknown, order, strict=True):
                found = found.with_operand(parameter, node)
            terms = dict(found.in_nodes(*term) for term in wanted.items() if (number, 1) not in term[0])
            terms |= {} if number is None else {ONE: polynomial[ONE]}
            if terms.keys() == polynomial.keys():
                differences = tuple(_differences(value, polynomial, terms))
                yield replace(found, differences=(*found.differences, *differences))


def _calls_between(result: fx.Node, operands: Mapping[str, object]) -> Iterator[Call]:
    """Yield the calls that compute a result from operands and numbers, the result first."""
    reached = [result]
    for node in reached:  # grows while it is read
        call = None if node in operands.values() or number_of(node) is not None else read_value(node)
        if call is not None:
            yield call
            read = node.args[:1] if call.operator is CAST else node.all_input_nodes  # not the type, as a value
            reached += [one for one in read if isinstance(one, fx.Node) and one not in reached]
            yield from checks_of(node) if node is not result else ()


def _is_cast(node: fx.Node) -> bool:
    call = read_value(node)
    return call is not None and call.operator is CAST


def _differences(value: fx.Node, found: Polynomial, wanted: Polynomial) -> Iterator[Difference]:
    facts = tensor_facts(value)
    allowed = tolerance(facts.dtype if facts is not None else torch.float32)
    for monomial, number in found.items():
        if not abs(number - wanted[monomial]) <= allowed * abs(wanted[monomial]):
            yield Difference(value, "literal", written(wanted[monomial], monomial), written(number, monomial))


def tolerance(dtype: torch.dtype) -> float:
    """Return the largest relative error that a literal of a formula may have.

    Programs write √½ as `0.70710678`. The error of the literal must be less than the rounding error of the formula
    itself, so that it does not affect the result. At fp32 the limit is 4 units of rounding, because each formula rounds
    at least four times; seven digits are enough. 16-bit types compute with fp32 literals. At fp64 the limit is 16
    units, because some literals are computed from others, such as `math.sqrt(2 / math.pi) * 0.044715`.
    """
    return 16 * torch.finfo(torch.float64).eps if dtype == torch.float64 else 4 * torch.finfo(torch.float32).eps
