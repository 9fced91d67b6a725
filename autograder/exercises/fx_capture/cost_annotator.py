"""Exercise 04.4: FLOPs and bytes of every node of a graph, and the peak of live memory."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed, pointwise_chain
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, Belief, sees

VIEWS = {"transpose", "chunk", "getitem"}


def costs(module: fx.GraphModule, *inputs: torch.Tensor) -> Mapping[str, Any]:
    """Return FLOPs and bytes by node, and the peak of live memory in bytes, by the rules of the exercise's text."""
    return _costs(module, inputs)


def _costs(
    module: fx.GraphModule,
    inputs: tuple[torch.Tensor, ...],
    *,
    each_use: bool = False,
    all_alive: bool = False,
    views_cost: bool = False,
    die_at_once: bool = False,
) -> Mapping[str, Any]:
    values = _values(module, inputs)
    nodes = list(module.graph.nodes)
    flops, moved = {}, {}
    for node in nodes:
        if not node.op.startswith("call") or (_name(node) in VIEWS and not views_cost):
            flops[node.name] = moved[node.name] = 0
            continue
        result, size = values[node], _size(values[node])
        flops[node.name] = 2 * size * values[node.args[0]].shape[-1] if _name(node) == "matmul" else size
        moved[node.name] = _bytes(result) + sum(_bytes(values[read]) for read in _reads(node, each_use))
    return {"flops": flops, "bytes": moved, "peak_bytes": _peak(nodes, values, all_alive, die_at_once)}


def _values(module: fx.GraphModule, inputs: tuple[torch.Tensor, ...]) -> dict[fx.Node, Any]:
    values: dict[fx.Node, Any] = {}

    class Keeping(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            values[n] = super().run_node(n)
            return values[n]

    Keeping(module, garbage_collect_values=False).run(*inputs)
    return values


def _size(value: Any) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _bytes(value: Any) -> int:
    return value.nbytes if isinstance(value, torch.Tensor) else 0


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _reads(node: fx.Node, each_use: bool) -> list[fx.Node]:
    if not each_use:
        return list(node.all_input_nodes)
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def _base(node: fx.Node) -> fx.Node:
    while node.op == "call_function" and _name(node) in VIEWS:
        node = node.all_input_nodes[0]
    return node


def _peak(nodes: list[fx.Node], values: dict[fx.Node, Any], all_alive: bool, die_at_once: bool) -> int:
    last = {_base(node): i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes):
        for read in node.all_input_nodes:
            last[_base(read)] = i
    owners = [n for n in nodes if n.op != "output" and _base(n) is n]
    born = {n: -1 if n.op == "placeholder" else nodes.index(n) for n in owners}
    if all_alive:
        return sum(_bytes(values[n]) for n in owners)
    ends = {n: last[n] - 1 if die_at_once and last[n] > born[n] else last[n] for n in owners}
    return max(sum(_bytes(values[n]) for n in owners if born[n] <= i <= ends[n]) for i in range(len(nodes)))


BELIEFS = (
    Belief(lambda m, *i: _costs(m, i, each_use=True), "an operand that is read twice by one node counts once."),
    Belief(lambda m, *i: _costs(m, i, all_alive=True), "the peak counts every tensor as if none were ever freed."),
    Belief(lambda m, *i: _costs(m, i, views_cost=True), "a view moves no bytes and computes nothing."),
    Belief(
        lambda m, *i: _costs(m, i, die_at_once=True),
        "an operand is counted as freed before the node that reads it last has run; both are alive then.",
    ),
)


def products(draw: Draw) -> list[Asked]:
    """Return graphs without views."""
    return [mixed(draw, views=False).asked_whole("products and pointwise steps") for _ in range(3)]


def residuals(draw: Draw) -> list[Asked]:
    """Return a graph in which a value stays alive during a long chain."""
    asked = []
    for _ in range(3):
        graph = RandomGraph(draw)
        x = graph.input(draw.integer(2, 9), draw.integer(2, 9))
        early = graph.call("relu", At(x))
        late = pointwise_chain(graph, graph.call("gelu", At(early)), draw.integer(2, 5))
        asked.append(graph.asked(At(graph.call("add", At(late), At(early))), "a residual over a long chain"))
    return asked


EXERCISE = Exercise(
    title="Annotate costs",
    kind=Kind.ANALYSIS,
    entry_point="annotate_costs",
    points=9,
    wall_s=30,
    masked=("course_lib.graph", "course_lib.profiling"),
    hints=(
        "Run the graph once with an Interpreter that keeps every node's value; numel() and nbytes say the rest.",
        "node.all_input_nodes lists each operand once. For memory, give every node a base: a view has its operand's.",
        "Number the nodes. A base lives from its own number, inputs from the start, to the number of its last reader; "
        "add up what lives at each number and take the largest sum.",
    ),
    checks=(
        Check("products and pointwise steps", "FLOPs and bytes", 3, sees(costs, products, BELIEFS)),
        Check("a residual over a long chain", "liveness", 2.4, sees(costs, residuals, BELIEFS)),
    ),
)
