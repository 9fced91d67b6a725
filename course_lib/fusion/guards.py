"""The rules for all fusions: each rule returns an objection to a match, or None.

Below them is the cost guard, for passes that may move more bytes than they save.
"""

from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.effects import between, effects_of, is_opaque, is_random, memory_of, writes_its_result
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import REMEDIES, Objection, place_of
from course_lib.fusion.storage import Writers, mutating_nodes, writes_to
from course_lib.graph import Cost, cost
from course_lib.graph.recorder import UNKNOWN, meets
from course_lib.module_hooks import has_hooks


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
    written = next((call.node for call in match.calls if call.in_place or writes_its_result(call.node)), None)
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
    """Refuse a match that stands before and after a node past which nothing may be moved.

    Such a node switches autocast or the recording of gradients, or runs code that cannot be observed.
    """
    first, last, matched = match.nodes[0], match.anchor, set(match.nodes)
    for node in opaque_nodes(match.writers, first):
        if first < node < last and node not in matched:
            return objection_to_crossing(node)
    return None


def opaque_nodes(writers: Sequence[fx.Node], node: fx.Node) -> Sequence[fx.Node]:
    """Return the nodes past which nothing may be moved, in the graph of `node` unless `writers` are given."""
    if isinstance(writers, Writers):
        return writers.opaque
    return [one for one in writers or mutating_nodes(node.graph) if is_opaque(one)]


def objection_to_crossing(node: fx.Node) -> Objection:
    """Return why nothing may be moved past a node."""
    unseen = effects_of(node).unseen
    if unseen:
        return Objection("unobserved", f"{node}{place_of(node)} stands in between and may do anything: {unseen}")
    return Objection("regime", f"{node} changes how later operators run, in the middle of the match")


def random_numbers_keep_their_order(match: Match) -> Objection | None:
    """Refuse a match if other random numbers are drawn between its dropout and the fused call."""
    drawing = [node for node in match.nodes if is_random(node)]
    if not drawing:
        return None
    others = [node for node in between(drawing[0], match.anchor) if is_random(node) and node not in match.nodes]
    reason = (
        f"{', '.join(node.name for node in others)} may draw random numbers after {drawing[0]}, before the fused call"
    )
    return Objection("random order", reason) if others else None


def operands_do_not_change(match: Match) -> Objection | None:
    """Refuse an operand that changes in place after the match has first read it.

    The fused call stands at the end of the match, so it reads its operands later than the program did. It may also save
    them for the backward pass, while the separate operators saved other tensors. Operands are also the tensors that a
    matched module holds.
    """
    if not match.writers:
        return None
    made: set[int] = set()
    for node in match.nodes:
        read = effects_of(node).reads - made
        changing = writes_to(read, after=node, among=match.writers)
        if changing:
            return objection_to_changes(match, node, changing)
        operands = frozenset().union(*map(memory_of, node.all_input_nodes))
        made |= memory_of(node) - operands - {UNKNOWN}
    return None


def objection_to_changes(match: Match, reader: fx.Node, changing: Sequence[fx.Node]) -> Objection:
    """Return an objection that names the writers, the changed operand and its first reader."""
    names = ", ".join(f"{node}{place_of(node)}" for node in changing)
    written = frozenset().union(*(effects_of(node).writes for node in changing))
    values = [value for value in match.operands.values() if value in reader.all_input_nodes]
    operands = [value for value in values if isinstance(value, fx.Node)] or reader.all_input_nodes
    changed = next((value for value in operands if meets(memory_of(value), written)), None)
    what = changed.name if changed is not None else f"a tensor of {reader.target}"
    unseen = next((effects_of(node).unseen for node in changing if effects_of(node).unseen), "")
    because = f": {unseen}" if unseen else ""
    verb = "may change" if unseen else "changes"
    return Objection("mutation", f"{names} {verb} {what} in place after {reader} has read it{because}")


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


def _shown(value: object) -> str:
    return str(value) if isinstance(value, (fx.Node, ModuleAttribute)) else repr(value)
