"""Whether two calls of a graph may change places, apart from what they read from each other."""

from dataclasses import dataclass

from torch import fx

from course_lib.fusion.effects import effects_of, is_opaque, is_pure, memory_of
from course_lib.fusion.guards import objection_to_crossing
from course_lib.fusion.rules import Objection, place_of
from course_lib.graph.recorder import meets


@dataclass(frozen=True)
class Swappable:
    """A call with all that another call's place can matter for."""

    node: fx.Node
    storages: frozenset[int]
    """The memory that it reads, and that behind its operands: a view reads nothing, but tells shape and place."""
    writes: frozenset[int]
    draws: bool
    silent: bool
    """Whether it runs for its effect only: an assertion, or `backward`."""
    opaque: bool
    pure: bool


def swappable(node: fx.Node) -> Swappable:
    """Return a call with its effects, which are looked up once."""
    effects, pure = effects_of(node), is_pure(node)
    storages = effects.reads.union(*map(memory_of, node.all_input_nodes))
    silent = effects.silent and not pure
    return Swappable(node, storages, effects.writes, effects.draws, silent, is_opaque(node), pure)


def objection_to_swapping(first: Swappable, last: Swappable) -> Objection | None:
    """Return why `first` must stay before `last`; that `last` reads its result is not asked here."""
    if first.pure and last.pure:
        return None
    for one in (first, last):
        if one.opaque:
            return objection_to_crossing(one.node)
        if one.silent:
            reason = f"{one.node}{place_of(one.node)} is called for its effect only, on which others may depend"
            return Objection("unobserved", reason)
    if first.draws and last.draws:
        reason = f"{first.node} draws random numbers before {last.node} does"
        return Objection("random order", reason)
    for writer, reader in ((first, last), (last, first)):
        if meets(reader.storages | reader.writes, writer.writes):
            changed = f"{writer.node}{place_of(writer.node)} changes in place what {reader.node} reads or changes"
            return Objection("mutation", changed)
    return None
