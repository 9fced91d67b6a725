"""Write a graph anew, with each part as a graph of its own and one call in its place."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx

from course_lib.backends.condensing import Condensation
from course_lib.backends.partitioning import order_of_effects
from course_lib.errors import BackendError


@dataclass(frozen=True, repr=False, eq=False)
class Part:
    """Nodes of a graph, as a graph of their own: their operands are its inputs, what others need is its output."""

    name: str
    graph_module: fx.GraphModule  # gives a tuple
    nodes: tuple[fx.Node, ...]  # in the graph that was cut
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]


def cut_out(gm: fx.GraphModule, parts: Sequence[Sequence[fx.Node]]) -> tuple[Part, ...]:
    """Return each of some nodes of `gm`, which is left as it is, as a graph of its own."""
    return tuple(_cut_out(gm, f"part_{number}", nodes) for number, nodes in enumerate(parts))


def split(gm: fx.GraphModule, parts: Sequence[Part]) -> fx.GraphModule:
    """Return a graph that calls the parts as modules and computes everything else as `gm` does.

    The result holds the parameters of `gm` and, under the names of the parts, their graph modules, which are there to
    be replaced. Effects keep their order. Raises `BackendError` if the parts form a cycle.
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
    owned = {str(node.target): _attribute(gm, str(node.target)) for node in gm.graph.find_nodes(op="get_attr")}
    modules = {str(node.target): gm.get_submodule(str(node.target)) for node in gm.graph.find_nodes(op="call_module")}
    return fx.GraphModule({**root, **owned, **modules}, graph, class_name="Split")


def _cut_out(gm: fx.GraphModule, name: str, nodes: Sequence[fx.Node]) -> Part:
    inside = set(nodes)
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    inputs = tuple(dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside))
    for number, value in enumerate(inputs):
        values[value] = graph.placeholder(f"input_{number}")
        values[value].meta = dict(value.meta)
    for node in nodes:
        values[node] = graph.node_copy(node, lambda operand: values[operand])
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


def _attribute(gm: fx.GraphModule, path: str) -> object:
    value: object = gm
    for name in path.split("."):
        value = getattr(value, name)
    return value
