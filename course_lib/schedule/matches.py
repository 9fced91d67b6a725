"""The places in a graph where a pattern of `find` fits, and the rules that let them be replaced."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import fx

from course_lib.fusion import Objection, Rejected
from course_lib.fusion.calls import MODULES, ModuleAttribute, module_of
from course_lib.fusion.effects import mutates
from course_lib.fusion.guards import (
    arguments_are_those_of_the_pattern,
    intermediate_values_stay_inside,
    modules_are_plain,
    nothing_is_switched_between,
    random_numbers_keep_their_order,
)
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import remedy
from course_lib.fusion.storage import mutations_of
from course_lib.graph.hooks import has_hooks
from course_lib.schedule.module_pattern import ModulePattern


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PatternMatch(Match):
    """One place in the graph of a sub-module where a pattern of `find` fits."""

    path: str  # of the sub-module
    pattern: ModulePattern

    def __str__(self) -> str:
        return f"{self.pattern.name} at {self.path or 'the model'}: {', '.join(node.name for node in self.nodes)}"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Matches:
    """All matches of a pattern in graph order, and the places that look like it and were left alone."""

    found: tuple[PatternMatch, ...]
    rejected: tuple[Rejected, ...] = ()

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[PatternMatch]:
        return iter(self.found)

    def __getitem__(self, number: int) -> PatternMatch:
        return self.found[number]

    def __str__(self) -> str:
        lines = [f"{len(self.found)} found, {len(self.rejected)} left alone"]
        return "\n".join([*lines, *(f"  {match}" for match in self.found), *(f"  {no}" for no in self.rejected)])

    __repr__ = __str__


def find_matches(path: str, graph_module: fx.GraphModule, pattern: ModulePattern) -> Matches:
    """Return the matches of `pattern` in the graph; no two of them share a node."""
    found: list[PatternMatch] = []
    rejected: list[Rejected] = []
    taken: set[fx.Node] = set()
    for node in graph_module.graph.nodes:
        fits = [(fit, objection_to(fit)) for fit in pattern.matches(node)]
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
    return Matches(tuple(found), tuple(rejected))


def placed(match: Match, path: str, pattern: ModulePattern) -> PatternMatch:
    """Return a match as one of `pattern` in the graph of the sub-module at `path`."""
    return PatternMatch(match.calls, match.operands, match.differences, match.writers, path=path, pattern=pattern)


def objection_to(match: Match) -> Objection | None:
    """Return the first reason why the matched nodes may not be taken out as one, or None."""
    return next((found for rule in _RULES if (found := rule(match)) is not None), None)


def named_modules_have_no_hooks(match: Match) -> Objection | None:
    """Refuse hooks of a module that was matched by its name alone."""
    for node in match.nodes:
        if node.op == "call_module" and has_hooks(module_of(node)):
            return Objection("hooks", f"{node.target} has hooks, which would no longer run")
    return None


def no_operator_writes_in_place(match: Match) -> Objection | None:
    """Refuse a matched operator that writes into a tensor that others may read.

    A module that stays one node is taken to leave its inputs alone; `verify` shows whether it does.
    """
    for call in match.calls:
        if call.in_place or (_is_known(call.node) and mutates(call.node)):
            return Objection("in place", f"{call.node} writes its result into a tensor that others may read")
    return None


def operands_stay_as_they_are(match: Match) -> Objection | None:
    """Refuse an operand that is changed in place after the match has first read it."""
    for value in match.operands.values():
        readers = [node for node in match.nodes if isinstance(value, fx.Node) and value in node.all_input_nodes]
        holders = [value] if isinstance(value, fx.Node) else []
        if isinstance(value, ModuleAttribute):
            readers, holders = list(match.nodes), _readers_of(match, value)
        changing = [node for node in mutations_of(holders, after=readers[0]) if _is_known(node)] if readers else []
        if changing:
            names = ", ".join(node.name for node in changing)
            return Objection("mutation", f"{names} changes {value} in place after {readers[0]} has read it")
    return None


_RULES: tuple[Callable[[Match], Objection | None], ...] = (
    arguments_are_those_of_the_pattern,
    modules_are_plain,
    named_modules_have_no_hooks,
    no_operator_writes_in_place,
    intermediate_values_stay_inside,
    nothing_is_switched_between,
    random_numbers_keep_their_order,
    operands_stay_as_they_are,
)


def _is_known(node: fx.Node) -> bool:
    return node.op != "call_module" or type(module_of(node)) in MODULES


def _readers_of(match: Match, attribute: ModuleAttribute) -> list[fx.Node]:
    return [node for node in match.anchor.graph.find_nodes(op="get_attr") if node.target == attribute.path]
