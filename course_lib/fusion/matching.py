"""Find a pattern, written as plain PyTorch, in a graph, in any spelling and with commuting operands in both orders.

Differences in literal arguments (`alpha=2` where the pattern has none) do not prevent a match. They are recorded, so
that the guard can name them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from torch import fx

from course_lib.capture.fx_tracing import LineTracer
from course_lib.errors import FusionError
from course_lib.fusion.calls import Call, operator_of, read_call
from course_lib.fusion.operators import Operator


@dataclass(frozen=True)
class Difference:
    """An argument that differs from that of the pattern."""

    node: fx.Node
    parameter: str
    expected: object
    found: object


@dataclass(frozen=True, eq=False)
class Match:
    """One place in a graph that matches a pattern; literal arguments may differ."""

    calls: tuple[Call, ...]  # the last one first; that is where the fused call will stand
    operands: Mapping[str, object] = field(default_factory=dict)  # parameter of the pattern -> value in the graph
    differences: tuple[Difference, ...] = ()
    writers: tuple[fx.Node, ...] = ()  # every node of the graph that changes a tensor in place

    @property
    def anchor(self) -> fx.Node:
        """Return the node whose result the fused call replaces."""
        return self.calls[0].node

    @property
    def nodes(self) -> tuple[fx.Node, ...]:
        """Return the matched nodes in graph order."""
        return tuple(sorted({call.node for call in self.calls}))

    def __getitem__(self, parameter: str) -> object:
        return self.operands[parameter]

    def node(self, parameter: str) -> fx.Node:
        """Return an operand that must be a node; the guard of the pass has made sure that it is."""
        value = self.operands[parameter]
        assert isinstance(value, fx.Node), f"{parameter} is {value!r}, no node"
        return value


class Pattern:
    """A function of PyTorch operators to look for; its parameters stand for any operand."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._graph = LineTracer(()).trace(function)
        (result,) = self._graph.output_node().args
        self._calls = {node: read_call(node) for node in self._graph.nodes if node.op.startswith("call")}
        unknown = [node for node, call in self._calls.items() if call is None]
        if unknown or not isinstance(result, fx.Node) or result not in self._calls:
            raise FusionError(
                f"A pattern must be made of operators that course_lib.fusion.operators lists, and return one tensor; "
                f"{getattr(function, '__qualname__', function)} has {unknown or [result]}."
            )
        self._result = result

    @property
    def operator(self) -> Operator:
        """Return the operator that is called last."""
        call = self._calls[self._result]
        assert call is not None, "the constructor has read every call of the pattern"
        return call.operator

    def matches(self, node: fx.Node, writers: tuple[fx.Node, ...] = ()) -> Iterator[Match]:
        """Yield each match of the pattern whose last call is `node`; matches with fewer differences come first."""
        found = list(self._unify(self._result, node, Match((), writers=writers)))
        yield from sorted(found, key=lambda match: len(match.differences))

    def _unify(self, pattern: object, value: object, match: Match) -> Iterator[Match]:
        if isinstance(pattern, fx.Node) and pattern.op == "placeholder":
            yield from self._bind(str(pattern.target), value, match)
        elif isinstance(pattern, fx.Node):
            wanted = self._calls[pattern]
            if wanted is not None and operator_of(value) is wanted.operator:  # reading all arguments takes longer
                yield from self._unify_call(wanted, read_call(value), match)

    def _bind(self, name: str, value: object, match: Match) -> Iterator[Match]:
        if name not in match.operands:
            yield replace(match, operands={**match.operands, name: value})
        elif match.operands[name] is value or _same_literal(match.operands[name], value):
            yield match

    def _unify_call(self, wanted: Call | None, call: Call | None, match: Match) -> Iterator[Match]:
        assert wanted is not None, "the constructor has read every call of the pattern"
        if call is None or call.operator is not wanted.operator:
            return
        match = replace(match, calls=(*match.calls, call))
        parameters = list(wanted.arguments)
        orders = [parameters]
        if wanted.operator.commutes:
            orders.append([parameters[1], parameters[0], *parameters[2:]])
        for order in orders:
            yield from self._unify_arguments(list(zip(parameters, order, strict=True)), wanted, call, match)

    def _unify_arguments(self, pairs: list[tuple[str, str]], wanted: Call, call: Call, match: Match) -> Iterator[Match]:
        if not pairs:
            yield match
            return
        (parameter, counterpart), *rest = pairs
        for partial in self._unify_argument(parameter, wanted[parameter], call, call[counterpart], match):
            yield from self._unify_arguments(rest, wanted, call, partial)

    def _unify_argument(
        self, parameter: str, expected: object, call: Call, found: object, match: Match
    ) -> Iterator[Match]:
        if isinstance(expected, fx.Node):
            yield from self._unify(expected, found, match)
        elif _same_literal(expected, found) or parameter in ("inplace", "out"):  # those have a rule of their own
            yield match
        else:
            yield replace(match, differences=(*match.differences, Difference(call.node, parameter, expected, found)))


def _same_literal(a: object, b: object) -> bool:
    """Return whether two literals mean the same: 1 and 1.0 do, 1 and True do not, a list and a tuple do."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same_literal, a, b))
    return not isinstance(a, fx.Node) and not isinstance(b, fx.Node) and a == b
