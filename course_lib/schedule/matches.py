"""Find patterns in the graph of a module: plain PyTorch functions, in which a regular expression may stand for modules.

Operators are compared as the fusion passes compare them: by what they compute, in any spelling, and with commuting
operands in both orders. A formula of GELU or SiLU is found as that operator. Functions that the table of operators does
not list match only themselves, with the same arguments. Rules say which of the places where a pattern fits may be
replaced.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature

import torch
from torch import fx

from course_lib.errors import ScheduleError
from course_lib.fusion.calls import Call, module_of, read_call
from course_lib.fusion.effects import effects_of, memory_of, writes_its_result
from course_lib.fusion.expressions.operator_formulas import calls_written_out
from course_lib.fusion.guards import (
    arguments_are_those_of_the_pattern,
    intermediate_values_stay_inside,
    modules_are_plain,
    nothing_is_switched_between,
    operands_do_not_change,
    random_numbers_keep_their_order,
)
from course_lib.fusion.matching import Match, Pattern
from course_lib.fusion.operators import Operator
from course_lib.fusion.result import Rejected
from course_lib.fusion.rules import Objection, remedy
from course_lib.fusion.storage import Writers, mutating_nodes
from course_lib.graph.memory import storage_of
from course_lib.graph.stand_ins import tensors_held
from course_lib.module_hooks import has_hooks


def call_module(regex: str, *inputs: object) -> fx.Proxy:
    """Represent, in a pattern, a call of a module whose name matches `regex`, with these inputs.

    The expression must match the module's whole path in the traced graph, or the last name of the path:
    `call_module("dropout.*", x)` finds `dropout`, `dropout_1` and `output.dropout`. Raises `ScheduleError` outside
    of a pattern.
    """
    proxy = next((value for value in inputs if isinstance(value, fx.Proxy)), None)
    if proxy is None or not isinstance(regex, str):
        raise ScheduleError(
            f"call_module got {regex!r} and {len(inputs)} inputs outside of a pattern; it expects an expression and "
            "values of a pattern, so use it in a function that is given to find."
        )
    try:
        re.compile(regex)
    except re.error as error:
        raise ScheduleError(f"call_module got {regex!r}, which is no regular expression: {error}.") from error
    return proxy.tracer.create_proxy("call_function", call_module, (regex, *inputs), {})


class ModulePattern(Pattern):
    """A pattern of the fusion passes that also knows modules by name, and functions that no table lists."""

    def __init__(self, function: Callable[..., object]) -> None:
        name = getattr(function, "__qualname__", repr(function))
        try:
            self._graph = fx.Tracer().trace(function)
        except ScheduleError:
            raise
        except Exception as error:  # a pattern can fail in any way while it runs on proxies
            raise ScheduleError(
                f"find got the pattern {name}, which cannot be traced ({type(error).__name__}: {error}); "
                "write it with operators only, without branches on values."
            ) from error
        (result,) = self._graph.output_node().args
        if not isinstance(result, fx.Node) or not result.op.startswith("call"):
            raise ScheduleError(
                f"find got the pattern {name}, which returns {result!r}; it expects the result of one operator."
            )
        self._calls = {node: read(node) for node in self._graph.nodes if node.op.startswith("call")}
        self._result = result
        self.parameters = tuple(str(node.target) for node in self._graph.find_nodes(op="placeholder"))
        self.name = name
        self._written_out: dict[fx.Node, list[tuple[Call, Match]]] = {}
        self._nearest: tuple[Match, fx.Node, object] | None = None  # what fits, what is wanted next, what is there

    def look_for_formulas(self, graph: fx.Graph, writers: Writers) -> None:
        """Read formulas of an activation in this graph as the activation, if the pattern has it."""
        names = {call.operator.name for call in self._calls.values() if call is not None}
        for node in graph.nodes:
            for call, match in calls_written_out(node, writers):
                if call.operator.name in names:
                    self._written_out.setdefault(call.node, []).append((call, match))

    @property
    def nearest(self) -> str:
        """Return a line about the place where most calls of the pattern fit, and what differs there."""
        if self._nearest is None:
            return "the graph has no call of anything"
        match, wanted, value = self._nearest
        if not match.calls:
            return f"no call in the graph is {self._described(wanted)}, the last call of the pattern"
        fits = ", ".join(call.node.name for call in match.calls)
        return f"nearest: {fits} fits; the pattern wants {self._described(wanted)} there, and finds {_described(value)}"

    def _described(self, wanted: fx.Node) -> str:
        if wanted.op == "placeholder":
            return f"the value of {wanted.target} again"
        call = self._calls[wanted]
        return f"call_module({wanted.args[0]!r})" if call is None or wanted.target is call_module else _name_of(call)

    def _unify(self, pattern: object, value: object, match: Match) -> Iterator[Match]:
        fits = False
        for fit in self._fits(pattern, value, match):
            fits = True
            yield fit
        deeper = self._nearest is None or len(match.calls) > len(self._nearest[0].calls)
        if not fits and deeper and isinstance(pattern, fx.Node):
            self._nearest = match, pattern, value

    def _fits(self, pattern: object, value: object, match: Match) -> Iterator[Match]:
        if not isinstance(pattern, fx.Node) or pattern.op == "placeholder":
            yield from super()._unify(pattern, value, match)
        elif pattern.target is call_module:
            yield from self._unify_module(pattern, value, match)
        else:
            wanted = self._calls[pattern]
            yield from self._unify_call(wanted, read(value), match)
            for call, formula in self._written_out.get(value, ()) if isinstance(value, fx.Node) else ():
                for found in self._unify_call(wanted, call, Match((), match.operands, match.differences)):
                    yield replace(found, calls=(*match.calls, *formula.calls, *found.calls[1:]), writers=match.writers)

    def _unify_module(self, pattern: fx.Node, value: object, match: Match) -> Iterator[Match]:
        regex, *wanted = pattern.args
        if not isinstance(value, fx.Node) or value.op != "call_module":
            return
        path, given = str(value.target), [*value.args, *value.kwargs.values()]
        fits = re.fullmatch(str(regex), path) or re.fullmatch(str(regex), path.rpartition(".")[2])
        call = read(value)
        if fits and call is not None and len(given) == len(wanted):
            yield from self._unify_all(wanted, given, replace(match, calls=(*match.calls, call)))

    def _unify_all(self, wanted: Sequence[object], given: Sequence[object], match: Match) -> Iterator[Match]:
        if not wanted:
            yield match
        elif isinstance(wanted[0], fx.Node):
            for partial in self._unify(wanted[0], given[0], match):
                yield from self._unify_all(wanted[1:], given[1:], partial)
        elif type(wanted[0]) is type(given[0]) and wanted[0] == given[0]:
            yield from self._unify_all(wanted[1:], given[1:], match)


def _name_of(call: Call) -> str:
    return call.operator.name.removeprefix("call_function ").removeprefix("call_method ")


def _described(value: object) -> str:
    if not isinstance(value, fx.Node):
        return repr(value)[:40]
    call = read(value)
    return f"{value.name}, an input or a parameter" if call is None else f"{value.name}, a call of {_name_of(call)}"


def read(node: object) -> Call | None:
    """Return the call of a node: of an operator in the table, or of a new operator that matches only itself."""
    if not isinstance(node, fx.Node) or not node.op.startswith("call"):
        return None
    known = read_call(node)
    if known is not None:
        return known
    operator = _unlisted(node.op, node.target, len(node.args), tuple(node.kwargs))
    values = dict(zip(operator.signature.parameters, [*node.args, *node.kwargs.values()], strict=True))
    return Call(node, operator, values)


@functools.lru_cache(maxsize=4096)
def _unlisted(kind: str, target: object, positional: int, keywords: tuple[str, ...]) -> Operator:
    names = [*(f"argument_{number}" for number in range(positional)), *keywords]
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    name = str(getattr(target, "__name__", target))
    function = target if callable(target) else call_module
    return Operator(f"{kind} {name}", signature, function, function)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PatternMatch(Match):
    """One match of a pattern of `find` in the graph of a sub-module."""

    path: str  # of the sub-module
    pattern: ModulePattern

    def __str__(self) -> str:
        return f"{self.pattern.name} at {self.path or 'the model'}: {', '.join(node.name for node in self.nodes)}"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Matches:
    """All matches of a pattern in graph order, and the rejected matches."""

    found: tuple[PatternMatch, ...]
    rejected: tuple[Rejected, ...] = ()
    nearest: str = ""  # where nothing fits: the place that comes nearest

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[PatternMatch]:
        return iter(self.found)

    def __getitem__(self, number: int) -> PatternMatch:
        return self.found[number]

    def __str__(self) -> str:
        lines = [f"{len(self.found)} found, {len(self.rejected)} left alone"]
        lines += [f"  {self.nearest}"] * (self.nearest != "")
        return "\n".join([*lines, *(f"  {match}" for match in self.found), *(f"  {no}" for no in self.rejected)])

    __repr__ = __str__


def find_matches(path: str, graph_module: fx.GraphModule, pattern: ModulePattern) -> Matches:
    """Return the matches of `pattern` in the graph; no two of them share a node."""
    found: list[PatternMatch] = []
    rejected: list[Rejected] = []
    taken: set[fx.Node] = set()
    writers = mutating_nodes(graph_module.graph)
    pattern.look_for_formulas(graph_module.graph, writers)
    for node in graph_module.graph.nodes:
        fits = [(fit, objection_to(fit)) for fit in pattern.matches(node, writers)]
        if not fits:
            continue
        fit, objection = next(((fit, why) for fit, why in fits if why is None), fits[0])
        if objection is None and taken & set(fit.nodes):
            objection = Objection("overlap", "some of these nodes belong to a match that was found before")
        if objection is None:
            taken |= set(fit.nodes)
            found.append(placed(fit, path, pattern))
        else:
            names = tuple(node.name for node in fit.nodes)
            rejected.append(
                Rejected(names, objection.rule, objection.reason, pattern.name, remedy=remedy(objection.rule))
            )
    return Matches(tuple(found), tuple(rejected), "" if found or rejected else pattern.nearest)


def placed(match: Match, path: str, pattern: ModulePattern) -> PatternMatch:
    """Return a match as one of `pattern` in the graph of the sub-module at `path`."""
    return PatternMatch(match.calls, match.operands, match.differences, match.writers, path=path, pattern=pattern)


def objection_to(match: Match) -> Objection | None:
    """Return the first objection to replacing the matched nodes by one call, or None."""
    return next((found for rule in _RULES if (found := rule(match)) is not None), None)


def named_modules_have_no_hooks(match: Match) -> Objection | None:
    """Refuse hooks of a module that was matched by its name alone."""
    for node in match.nodes:
        if node.op == "call_module" and has_hooks(module_of(node)):
            return Objection("hooks", f"{node.target} has hooks, which would no longer run")
    return None


def no_operator_writes_in_place(match: Match) -> Objection | None:
    """Refuse a matched operator that writes into a tensor that others may read.

    A module with code from outside of PyTorch, which a pattern names, is assumed not to change its inputs; `verify`
    checks that.
    """
    for call in match.calls:
        named = call.node.op == "call_module" and bool(effects_of(call.node).unseen)
        if call.in_place or (not named and writes_its_result(call.node)):
            return Objection("in place", f"{call.node} writes its result into a tensor that others may read")
    return None


def operands_do_not_change_within_reach(match: Match) -> Objection | None:
    """Refuse an operand that changes in place after the match has first read it.

    The graph of a schedule has no shapes, so what a leaf module writes is not observed. It may change only what it can
    reach: its operands, what shares memory with them, and the tensors that it holds. A matched leaf module is replaced.
    """
    named = {node for node in match.nodes if node.op == "call_module" and effects_of(node).unseen}
    read = [node for node in match.nodes if node not in named]
    operands = frozenset().union(*(_reached(operand) for node in match.nodes for operand in node.all_input_nodes))
    operands -= frozenset(match.nodes)
    held = frozenset().union(*(effects_of(node).reads for node in read), *map(memory_of, _attributes(operands)))

    def reaches(writer: fx.Node) -> bool:
        tensors = tensors_held(module_of(writer)) if writer.op == "call_module" else ()
        own = {storage_of(tensor) for tensor in tensors}.union(*map(memory_of, _attributes(writer.all_input_nodes)))
        given = frozenset().union(*map(_reached, writer.all_input_nodes))
        return not operands.isdisjoint(given) or not held.isdisjoint(own)

    writers = (node for node in match.writers if node not in named and (not effects_of(node).unseen or reaches(node)))
    return operands_do_not_change(replace(match, writers=Writers(writers)))


def _reached(value: fx.Node) -> frozenset[fx.Node]:
    """Return a value, and all values from which it may have its memory."""
    found: set[fx.Node] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [] if _gives_new_memory(node) else node.all_input_nodes
    return frozenset(found)


def _attributes(nodes: Iterable[fx.Node]) -> list[fx.Node]:
    return [node for node in nodes if node.op == "get_attr"]


def _gives_new_memory(node: fx.Node) -> bool:
    """Return whether the schema of a known operator says that its result is no view; dropout may return its input."""
    call = read_call(node)
    packet = None if call is None else getattr(torch.ops.aten, call.operator.name, None)
    if call is None or packet is None or call.in_place or call.operator.random or not call.exact_module:
        return False
    if node.kwargs.get("out") is not None:
        return False
    schemas = (getattr(packet, name)._schema for name in packet.overloads())
    return not any(
        result.alias_info is not None and not result.alias_info.is_write
        for schema in schemas
        for result in schema.returns
    )


_RULES: tuple[Callable[[Match], Objection | None], ...] = (
    arguments_are_those_of_the_pattern,
    modules_are_plain,
    named_modules_have_no_hooks,
    no_operator_writes_in_place,
    intermediate_values_stay_inside,
    nothing_is_switched_between,
    random_numbers_keep_their_order,
    operands_do_not_change_within_reach,
)
