"""Cut a graph into parts for a target and the rest.

PyTorch's own `CapabilityBasedPartitioner` does the same for graphs without effects; it knows no order between two
random numbers, so what it cuts may draw them the other way round.
"""

from collections.abc import Callable

import torch
from torch import fx

from course_lib.backends.condensing import Condensation
from course_lib.fusion.effects import is_pure, is_random


def partition(graph: fx.Graph, supported: Callable[[fx.Node], bool]) -> list[tuple[fx.Node, ...]]:
    """Return the parts of a graph: supported nodes that hang together, each in exactly one part.

    The parts form no cycle, neither with each other nor with what is left outside. They are as large as that allows
    along edges: merging two parts that one edge connects would make a cycle. Nodes that have no edge between them
    are not put together, because that would save no memory traffic. What only consists of views is no part.
    """
    candidates = [node for node in graph.nodes if supported(node)]
    groups = Condensation(graph, order_of_effects(graph))
    groups.merge_neighbours(candidates, lambda a, b: True)
    parts = dict.fromkeys(groups.group_of(node) for node in candidates)
    return [tuple(groups.members[first]) for first in parts if any(map(computes, groups.members[first]))]


def computes(node: fx.Node) -> bool:
    """Return False for views, which only say something about a tensor that is there already."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    aliases = [value.alias_info for value in node.target._schema.returns]
    return not aliases or any(alias is None or alias.is_write for alias in aliases)


def order_of_effects(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    """Return, for each node whose place in the order matters, the nodes that have to run before it.

    Random numbers are drawn in their order. What changes a tensor in place, or may have another effect, stays after
    everything before it and before everything after it.
    """
    after: dict[fx.Node, list[fx.Node]] = {}
    since_barrier: list[fx.Node] = []
    barrier: fx.Node | None = None
    drawn: fx.Node | None = None
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        earlier = [] if barrier is None else [barrier]
        if is_random(node):
            earlier += [] if drawn is None else [drawn]
            drawn = node
        elif not is_pure(node):
            earlier += since_barrier
            barrier, since_barrier = node, []
        if earlier:
            after[node] = earlier
        since_barrier.append(node)
    return after
