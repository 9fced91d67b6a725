"""The rules for all fusions: each rule returns an objection to a match, or None.

Below them is the cost guard, for passes that may move more bytes than they save.
"""

from collections.abc import Callable, Iterator

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.effects import between, is_random, mutates, switches_regime
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import REMEDIES, Objection
from course_lib.fusion.storage import Writers, mutations_of
from course_lib.graph import Cost, cost
from course_lib.graph.hooks import has_hooks


def common_objection(match: Match) -> Objection | None:
    """Return the first of the common rules that refuses a match, or None."""
    return next((found for rule in COMMON_RULES if (found := rule(match)) is not None), None)


def arguments_are_those_of_the_pattern(match: Match) -> Objection | None:
    """Refuse an argument, given or omitted, that differs from the pattern's argument."""
    if not match.differences:
        return None
    different = match.differences[0]
    rule = different.parameter if different.parameter in REMEDIES else "argument"
    name, found, expected = different.parameter, _shown(different.found), _shown(different.expected)
    return Objection(rule, f"{different.node} has {name}={found}; only {name}={expected} can be fused")


def modules_are_plain(match: Match) -> Objection | None:
    """Refuse a module of a subclass or with hooks, which may do more than the known class."""
    for call in match.calls:
        if call.module is None:
            continue
        kind = type(call.module).__name__
        if not call.exact_module:
            reason = f"{call.node.target} is a {kind}, a subclass of what can be fused, and may compute something else"
            return Objection("subclass", reason)
        if has_hooks(call.module):
            return Objection("hooks", f"{call.node.target} has hooks, which would no longer run")
    return None


def nothing_is_written_in_place(match: Match) -> Objection | None:
    """Refuse a matched call that writes into a tensor that others may read."""
    written = next((call.node for call in match.calls if call.in_place or mutates(call.node)), None)
    if written is None:
        return None
    return Objection("in place", f"{written} writes its result into a tensor that others may read")


def intermediate_values_stay_inside(match: Match) -> Objection | None:
    """Refuse an intermediate value that another node needs, which must then be computed anyway."""
    inside = set(match.nodes)
    doubled = [value for value in match.operands.values() if isinstance(value, fx.Node) and value in inside]
    if doubled:
        return Objection("other users", f"{doubled[0]} is an operand of {match.anchor} beside its place in the pattern")
    for node in match.nodes:
        others = [user for user in node.users if user not in inside]
        if node is match.anchor or not others:
            continue
        if any(user.op == "output" for user in others):
            return Objection("is an output", f"the graph returns {node}, so it must be computed anyway")
        names = ", ".join(user.name for user in others)
        return Objection("other users", f"{node} is also used by {names}, so it must be computed anyway")
    return None


def nothing_is_switched_between(match: Match) -> Objection | None:
    """Refuse a match within which autocast or gradient recording is switched."""
    switch = next((node for node in between(match.nodes[0], match.anchor) if switches_regime(node)), None)
    if switch is None:
        return None
    return Objection("regime", f"{switch} changes how later operators run, in the middle of the match")


def random_numbers_keep_their_order(match: Match) -> Objection | None:
    """Refuse a match if other random numbers are drawn between its dropout and the fused call."""
    drawing = [node for node in match.nodes if is_random(node)]
    if not drawing:
        return None
    others = [node for node in between(drawing[0], match.anchor) if is_random(node) and node not in match.nodes]
    reason = f"{', '.join(node.name for node in others)} draws random numbers after {drawing[0]}, before the fused call"
    return Objection("random order", reason) if others else None


def operands_do_not_change(match: Match) -> Objection | None:
    """Refuse an operand that changes in place after the match has first read it.

    The fused call stands at the end of the match, so it reads its operands later than the program did. It may also save
    them for the backward pass, while the separate operators saved other tensors.
    """
    if not match.writers:
        return None
    for value in match.operands.values():
        for reader, holders in _first_readers(match, value):
            changing = mutations_of(holders, after=reader, among=match.writers)
            if changing:
                names = ", ".join(node.name for node in changing)
                return Objection("mutation", f"{names} changes {value} in place after {reader} has read it")
    return None


COMMON_RULES: tuple[Callable[[Match], Objection | None], ...] = (
    arguments_are_those_of_the_pattern,
    modules_are_plain,
    nothing_is_written_in_place,
    intermediate_values_stay_inside,
    nothing_is_switched_between,
    random_numbers_keep_their_order,
    operands_do_not_change,
)


def cost_on_fakes(function: Callable[[], object], mode: FakeTensorMode) -> Cost:
    """Return the forward cost of one call of `function` on fake tensors of `mode`, so nothing is computed."""
    with mode, torch.no_grad():
        return cost(function, ())


def objection_to_traffic(before: Cost, after: Cost, why: str) -> Objection | None:
    """Refuse a fusion that does not move fewer bytes; `why` names the reason in a few words."""
    if after.bytes_moved < before.bytes_moved:
        return None
    reason = f"fused, {after.bytes_moved:,} bytes would be moved instead of {before.bytes_moved:,}"
    return Objection("traffic", f"{reason}: {why}")


def _first_readers(match: Match, value: object) -> Iterator[tuple[fx.Node, list[fx.Node]]]:
    """Yield the first matched node that reads a value, with the nodes through which the value could be changed."""
    if isinstance(value, fx.Node):
        readers = [node for node in match.nodes if value in node.all_input_nodes]
        if readers:
            yield readers[0], [value]
    elif isinstance(value, ModuleAttribute):
        writers = match.writers if isinstance(match.writers, Writers) else Writers(match.writers)
        yield match.nodes[0], list(writers.holders(value.path))


def _shown(value: object) -> str:
    return str(value) if isinstance(value, (fx.Node, ModuleAttribute)) else repr(value)
