"""Find a formula, written as plain PyTorch, in a graph: in any algebraic order, and with its numbers compared.

`matching.Pattern` holds each call of a pattern against one call of the graph. Here, arithmetic is expanded on both
sides, and polynomials are compared. Only what is no arithmetic, an `Atom`, is held against a node.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from course_lib.fusion.algebra.atoms import atoms_of
from course_lib.fusion.algebra.expansion import Expansion, is_arithmetic, nodes_after, nodes_before
from course_lib.fusion.algebra.polynomial import ONE, Monomial, Polynomial, TooLargeError, values_of, written
from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.matching import Difference, Match
from course_lib.fusion.values import tensor_facts

Known = Mapping[fx.Node, tuple[fx.Node, int, float]]


@dataclass(frozen=True)
class _Fit:
    """What the values of a pattern are in the graph, as far as they are known."""

    values: Known = field(default_factory=dict)  # value of the pattern -> node, and power and scale that it has there
    operands: Mapping[str, object] = field(default_factory=dict)
    nodes: frozenset[fx.Node] = frozenset()
    differences: tuple[Difference, ...] = ()

    def with_value(self, value: fx.Node, node: fx.Node, power: int = 1, scale: float = 1.0) -> "_Fit":
        """Return this fit, in which `node` is `scale * value ** power`."""
        return replace(self, values={**self.values, value: (node, power, scale)})

    def with_operand(self, parameter: fx.Node, found: object) -> "_Fit":
        """Return this fit, in which a parameter stands for what was found."""
        fit = replace(self, operands={**self.operands, str(parameter.target): found})
        return fit.with_value(parameter, found) if isinstance(found, fx.Node) else fit


class FormulaPattern:
    """A function of PyTorch operators. Its parameters stand for tensors, and `numbers` for numbers that are added."""

    def __init__(self, function: Callable[..., object], numbers: Collection[str] = ()) -> None:
        self._graph = fx.symbolic_trace(function).graph
        (self._result,) = self._graph.output_node().args
        values = [node for node in self._graph.nodes if not is_arithmetic(node)]
        self._expansion = Expansion(values)
        self._key = next(node for node in reversed(values) if node.op.startswith("call"))
        self._numbers = numbers

    @property
    def operator(self) -> str:
        """The name of the last operator that is no arithmetic; a match is looked for around its calls."""
        return _call(self._key).operator.name

    def matches(self, node: fx.Node, writers: tuple[fx.Node, ...] = ()) -> Iterator[Match]:
        """Yield each way in which the pattern fits around a node. Numbers that are off are differences of the match."""
        for fit in self._fit_atom(self._key, node, _Fit()):
            for result in nodes_after(node):
                for found in self._fit(self._result, result, fit):
                    nodes = [result, *(found.nodes - {result})]
                    calls = tuple(call for one in nodes if (call := read_call(one)) is not None)
                    yield Match(calls, found.operands, found.differences, writers)

    def _fit(self, pattern: object, value: object, fit: _Fit) -> Iterator[_Fit]:
        """Yield each way in which a value of the graph is the polynomial that the pattern has at a node."""
        wanted = self._expansion.of(pattern).polynomial
        values = [one for one in values_of(wanted) if one.target not in self._numbers]
        unknown = [one for one in values if one not in fit.values]
        atom = next((one for one in unknown if one.op != "placeholder"), None)
        if atom is not None:
            for node in nodes_before(value):
                for found in self._fit_atom(atom, node, fit):
                    yield from self._fit(pattern, value, found)
        elif unknown == values:
            for node in nodes_before(value):
                yield from self._compare(wanted, value, fit.with_operand(values[0], node), unknown[1:])
        else:
            yield from self._compare(wanted, value, fit, unknown)

    def _fit_atom(self, pattern: fx.Node, node: fx.Node, fit: _Fit) -> Iterator[_Fit]:
        """Yield each way in which a node of the graph is an atom of the pattern, or a sum that it divides by."""
        if is_arithmetic(pattern):
            yield from (found.with_value(pattern, node) for found in self._fit(pattern, node, fit))
            return
        call = _call(pattern)
        for atom in atoms_of(node):
            if atom.operator != call.operator.name:
                continue
            literals = {call[name]: found for name, found in atom.literals.items()}
            if any(fit.operands.get(str(parameter), literal) != literal for parameter, literal in literals.items()):
                continue
            found = replace(fit, nodes=fit.nodes | atom.nodes).with_value(pattern, node, atom.power, atom.scale)
            for parameter, literal in literals.items():
                assert isinstance(parameter, fx.Node), "a pattern takes dimensions and corrections as parameters"
                found = found.with_operand(parameter, literal)
            yield from self._fit(call["input"], atom.argument, found)

    def _compare(self, wanted: Polynomial, value: object, fit: _Fit, unknown: Sequence[fx.Node]) -> Iterator[_Fit]:
        """Yield the fit if a value is the wanted polynomial, where unknown parameters are what is left over."""
        known = [fit.values[one][0] for one in values_of(wanted) if one in fit.values]
        try:
            expanded = Expansion(known).of(value)
        except TooLargeError:
            return
        others = [one for one in values_of(expanded.polynomial) if one not in known]
        for order in itertools.permutations(others) if len(others) == len(unknown) else ():
            found = replace(fit, nodes=fit.nodes | expanded.nodes)
            for parameter, node in zip(unknown, order, strict=True):
                found = found.with_operand(parameter, node)
            terms = _in_values_of(wanted, expanded.polynomial, found.values)
            numbers = [one for one in values_of(wanted) if one.target in self._numbers]
            for parameter in numbers:
                found = found.with_operand(parameter, terms.pop(ONE, (0.0, ONE))[0])
            needed = {m: c for m, c in wanted.items() if m not in [frozenset({(one, 1)}) for one in numbers]}
            if terms.keys() == needed.keys():
                differences = tuple(_differences(value, terms, needed))
                yield replace(found, differences=(*found.differences, *differences))


Terms = Mapping[Monomial, tuple[float, Monomial]]  # in values of the pattern; coefficient, and monomial of the graph


def _in_values_of(wanted: Polynomial, polynomial: Polynomial, values: Known) -> dict[Monomial, tuple[float, Monomial]]:
    """Return the terms of a polynomial of the graph, with the values of the pattern in the place of nodes."""
    back = {values[one][0]: (one, *values[one][1:]) for one in values_of(wanted) if one in values}
    terms = {}
    for monomial, coefficient in polynomial.items():
        scale = math.prod(back[node][2] ** exponent for node, exponent in monomial)
        powers = frozenset((back[node][0], exponent * back[node][1]) for node, exponent in monomial)
        terms[powers] = (coefficient * scale, monomial)
    return terms


def _differences(value: object, terms: Terms, wanted: Polynomial) -> Iterator[Difference]:
    facts = tensor_facts(value) if isinstance(value, fx.Node) else None
    allowed = tolerance(facts.dtype if facts is not None else torch.float32)
    for monomial, (coefficient, as_written) in terms.items():
        if isinstance(value, fx.Node) and not abs(coefficient - wanted[monomial]) <= allowed * abs(wanted[monomial]):
            there, here = ({as_written: number} for number in (wanted[monomial], coefficient))
            yield Difference(value, "literal", written(there), written(here))


def tolerance(dtype: torch.dtype) -> float:
    """Return how far from its value, relatively, a literal of a formula may be.

    Programs write √½ as `0.70710678`. What the literal lacks must be less than what the formula's own roundings do,
    so that no result can tell. At fp32 that is 4 units of rounding, since each formula rounds at least so often; seven
    digits are enough. 16-bit types compute with fp32 literals. At fp64 it is 16 units, because some literals are made
    of others, such as `math.sqrt(2 / math.pi) * 0.044715`.
    """
    return 16 * torch.finfo(torch.float64).eps if dtype == torch.float64 else 4 * torch.finfo(torch.float32).eps


def _call(node: fx.Node) -> Call:
    call = read_call(node)
    assert call is not None, f"{node} of a pattern calls no operator that course_lib.fusion.operators lists"
    return call
