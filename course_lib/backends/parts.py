"""Cut a graph into parts for a target and the rest, and rebuild it with one call for each part.

PyTorch's own `CapabilityBasedPartitioner` does the same for graphs without effects; it does not keep the order of
random operators, so a graph that it divides may draw random numbers in another order.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import fx

from course_lib.backends.condensation import Condensation
from course_lib.errors import BackendError
from course_lib.fusion.effects import is_pure, is_random
from course_lib.fusion.surgery import lift


@dataclass(frozen=True, repr=False, eq=False)
class Part:
    """Nodes of a graph, as a separate graph: outside operands are its inputs, results used outside its outputs."""

    name: str
    graph_module: fx.GraphModule  # gives a tuple
    nodes: tuple[fx.Node, ...]  # in the graph that was cut
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]


def partition(graph: fx.Graph, supported: Callable[[fx.Node], bool]) -> list[tuple[fx.Node, ...]]:
    """Return the parts of a graph: connected supported nodes, each in exactly one part.

    The parts form no cycle, neither with each other nor with the other nodes. They are as large as possible: merging
    two parts that an edge connects would create a cycle. Nodes without an edge between them are not merged, because
    that would save no memory traffic. A group that consists only of views is not a part.
    """
    candidates = [node for node in graph.nodes if supported(node)]
    groups = Condensation(graph, order_of_effects(graph))
    groups.merge_neighbours(candidates, lambda a, b: True)
    parts = dict.fromkeys(groups.group_of(node) for node in candidates)
    return [tuple(groups.members[first]) for first in parts if any(map(computes, groups.members[first]))]


def computes(node: fx.Node) -> bool:
    """Return False for views, which only describe an existing tensor."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    aliases = [value.alias_info for value in node.target._schema.returns]
    return not aliases or any(alias is None or alias.is_write for alias in aliases)


def order_of_effects(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    """Return, for each node whose place in the order matters, the nodes that have to run before it.

    Random numbers are drawn in graph order. A node that changes a tensor in place, or may have another effect, keeps
    its order relative to all other nodes.
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


def cut_out(gm: fx.GraphModule, parts: Sequence[Sequence[fx.Node]]) -> tuple[Part, ...]:
    """Return each group of nodes of `gm` as a separate graph; `gm` does not change."""
    return tuple(_cut_out(gm, f"part_{number}", nodes) for number, nodes in enumerate(parts))


def split(gm: fx.GraphModule, parts: Sequence[Part]) -> fx.GraphModule:
    """Return a graph that calls the parts as modules and computes everything else as `gm` does.

    The result holds the parameters of `gm` and, under the names of the parts, their graph modules, which the caller may
    replace. Effects keep their order. Raises `BackendError` if the parts form a cycle.
    """
    groups = Condensation(gm.graph, order_of_effects(gm.graph))
    owner: dict[fx.Node, Part] = {}
    for part in parts:
        for node in part.nodes:
            if not groups.merge(part.nodes[0], node):
                raise BackendError(
                    f"{part.name} cannot be one call: something outside of it needs {part.nodes[0]}, and {node} needs "
                    "that. Give parts without such paths, as partition() does."
                )
            owner[node] = part
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    for members in groups.in_order():
        if members[0] in owner:
            _call(graph, owner[members[0]], values)
        else:
            values[members[0]] = graph.node_copy(members[0], lambda operand: values[operand])
    graph.lint()
    root = {part.name: part.graph_module for part in parts}
    attributes = {str(node.target): attrgetter(str(node.target))(gm) for node in gm.graph.find_nodes(op="get_attr")}
    modules = {str(node.target): gm.get_submodule(str(node.target)) for node in gm.graph.find_nodes(op="call_module")}
    return fx.GraphModule({**root, **attributes, **modules}, graph, class_name="Split")


def _cut_out(gm: fx.GraphModule, name: str, nodes: Sequence[fx.Node]) -> Part:
    inside = set(nodes)
    inputs = tuple(dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside))
    graph, values = lift(nodes, {value: f"input_{number}" for number, value in enumerate(inputs)})
    for value in inputs:
        values[value].meta = dict(value.meta)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    graph.output(tuple(values[node] for node in outputs))
    graph.lint()
    return Part(name, fx.GraphModule(gm, graph, class_name="Part"), tuple(nodes), inputs, outputs)


def _call(graph: fx.Graph, part: Part, values: dict[fx.Node, fx.Node]) -> None:
    call = graph.call_module(part.name, tuple(values[value] for value in part.inputs))
    call.meta["val"] = tuple(node.meta.get("val") for node in part.outputs)
    for position, node in enumerate(part.outputs):
        value = graph.call_function(operator.getitem, (call, position))
        value.meta = dict(node.meta)
        values[node] = value
