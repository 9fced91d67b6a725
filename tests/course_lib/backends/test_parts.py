"""Parts never make a cycle, are as large as that allows, and what is split computes what it did."""

import random

import pytest
import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from course_lib.backends import cut_out, partition, split
from course_lib.backends.condensation import Condensation
from course_lib.backends.parts import order_of_effects
from course_lib.errors import BackendError

ATEN = torch.ops.aten
TAKEN = (ATEN.add.Tensor, ATEN.mul.Tensor, ATEN.relu.default)
LEFT = (ATEN.sub.Tensor, ATEN.neg.default)


def taken(node: fx.Node) -> bool:
    return node.target in TAKEN


def random_graph(seed: int, size: int = 24) -> fx.GraphModule:
    """A random acyclic graph of operators, about half of which are taken; it returns everything that nobody uses."""
    draw = random.Random(seed)
    graph = fx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(size):
        target = draw.choice(TAKEN + LEFT)
        recent = values[-6:] if draw.random() < 0.7 else values
        count = len(target._schema.arguments) if target in (ATEN.relu.default, ATEN.neg.default) else 2
        values.append(graph.call_function(target, tuple(draw.choice(recent) for _ in range(count))))
    graph.output(tuple(value for value in values[2:] if not value.users))
    return fx.GraphModule(torch.nn.Module(), graph)


def reaches(start: set[fx.Node], end: set[fx.Node], without: set[fx.Node]) -> bool:
    """Tell, by walking, whether a path leads from `start` to `end` through at least one node outside of `without`."""
    waiting = [user for node in start for user in node.users if user not in without]
    seen: set[fx.Node] = set()
    while waiting:
        node = waiting.pop()
        if node in end:
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return False


def in_a_cycle(graph: fx.Graph, parts: list[tuple[fx.Node, ...]]) -> bool:
    """Tell, by sorting, whether the graph in which each part is one node has a cycle."""
    unit = {node: ("part", number) for number, part in enumerate(parts) for node in part}
    edges = {
        (unit.get(operand, operand), unit.get(node, node))
        for node in graph.nodes
        for operand in node.all_input_nodes
        if unit.get(operand, operand) != unit.get(node, node)
    }
    left = {end for edge in edges for end in edge}
    while left:
        free = {one for one in left if not any(end == one for _, end in edges)}
        if not free:
            return True
        left -= free
        edges = {(start, end) for start, end in edges if start not in free}
    return False


@pytest.mark.parametrize("seeds", [range(start, start + 40) for start in range(0, 200, 40)], ids=str)
def test_parts_of_random_graphs_are_acyclic_maximal_and_disjoint(seeds):
    for seed in seeds:
        gm = random_graph(seed)
        parts = partition(gm.graph, taken)
        flat = [node for part in parts for node in part]
        assert sorted(flat) == [node for node in gm.graph.nodes if taken(node)], seed
        assert not in_a_cycle(gm.graph, parts), seed
        for number, part in enumerate(parts):
            for other in parts[number + 1 :]:
                edge = any(user in other for node in part for user in node.users) or any(
                    user in part for node in other for user in node.users
                )
                merged = [each for each in parts if each not in (part, other)] + [part + other]
                assert not edge or in_a_cycle(gm.graph, merged), f"{part} and {other} of graph {seed} could be one"


@pytest.mark.parametrize("seed", range(30))
def test_a_split_random_graph_computes_what_it_did(seed):
    gm = random_graph(seed)
    code = gm.code
    parts = cut_out(gm, partition(gm.graph, taken))
    x, y = torch.randn(3), torch.randn(3)
    again = split(gm, parts)
    for actual, expected in zip(again(x, y), gm(x, y), strict=True):
        assert torch.equal(actual, expected)
    assert len(again.graph.find_nodes(op="call_module")) == len(parts)
    assert gm.code == code


def diamond(middle: object) -> tuple[fx.Graph, dict[str, fx.Node]]:
    graph = fx.Graph()
    top = graph.call_function(ATEN.relu.default, (graph.placeholder("x"),))
    left = graph.call_function(middle, (top,))
    right = graph.call_function(ATEN.relu.default, (top,))
    bottom = graph.call_function(ATEN.add.Tensor, (left, right))
    graph.output((bottom,))
    return graph, {"top": top, "left": left, "right": right, "bottom": bottom}


def test_two_ends_of_a_diamond_around_a_refused_node_do_not_merge():
    graph, nodes = diamond(ATEN.neg.default)
    assert partition(graph, taken) == [(nodes["top"], nodes["right"]), (nodes["bottom"],)]
    graph, nodes = diamond(ATEN.relu.default)
    assert partition(graph, taken) == [tuple(nodes.values())]


def test_a_part_that_would_make_a_cycle_is_refused_in_one_sentence():
    graph, _ = diamond(ATEN.neg.default)
    gm = fx.GraphModule(torch.nn.Module(), graph)
    greedy = [tuple(node for node in gm.graph.nodes if taken(node))]
    with pytest.raises(BackendError, match="part_0 cannot be one call: something outside of it needs relu"):
        split(gm, cut_out(gm, greedy))


def test_two_parts_that_need_each_other_do_not_arise():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    a, b = graph.call_function(ATEN.relu.default, (x,)), graph.call_function(ATEN.relu.default, (y,))
    to_b, to_a = graph.call_function(ATEN.neg.default, (a,)), graph.call_function(ATEN.neg.default, (b,))
    c, d = graph.call_function(ATEN.add.Tensor, (a, to_a)), graph.call_function(ATEN.add.Tensor, (b, to_b))
    graph.output((c, d))
    parts = partition(graph, taken)
    assert not in_a_cycle(graph, parts)
    assert len(parts) == 3  # one of a–c and b–d, not both


def randomness_around_a_part() -> tuple[fx.GraphModule, dict[str, fx.Node]]:
    """Random numbers that need the beginning of what would be a part, before random numbers that its end needs."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(ATEN.relu.default, (x,))
    one = graph.call_function(ATEN.bernoulli.default, (first,))
    two = graph.call_function(ATEN.bernoulli.default, (x,))
    last = graph.call_function(ATEN.add.Tensor, (first, two))
    graph.output((one, last))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    names = ("first", "one", "two", "last")
    return gm, dict(zip(names, list(gm.graph.nodes)[1:5], strict=True))


def test_random_numbers_are_drawn_in_the_order_of_the_program():
    gm, nodes = randomness_around_a_part()
    assert partition(gm.graph, taken) == [(nodes["first"],), (nodes["last"],)]
    x = torch.rand(100)
    torch.manual_seed(0)
    expected = gm(x)
    torch.manual_seed(0)
    actual = split(gm, cut_out(gm, partition(gm.graph, taken)))(x)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_pytorchs_partitioner_would_draw_them_the_other_way_round():
    class Taken(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return taken(node)

    gm, nodes = randomness_around_a_part()
    proposed = CapabilityBasedPartitioner(gm, Taken()).propose_partitions()
    assert [set(part.nodes) for part in proposed] == [{nodes["first"], nodes["last"]}]


def test_nothing_moves_across_a_change_in_place():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    before = graph.call_function(ATEN.relu.default, (x,))
    change = graph.call_function(ATEN.copy_.default, (x, y))
    after = graph.call_function(ATEN.add.Tensor, (before, x))
    graph.output((after,))
    assert partition(graph, taken) == [(before,), (after,)]
    assert change in order_of_effects(graph)[after]
    gm = fx.GraphModule(torch.nn.Module(), graph)
    x, y = torch.randn(3), torch.randn(3)
    again = split(gm, cut_out(gm, partition(gm.graph, taken)))
    assert torch.equal(again(x.clone(), y)[0], gm(x.clone(), y)[0])


def test_views_alone_are_no_part():
    graph = fx.Graph()
    graph.output((graph.call_function(ATEN.permute.default, (graph.placeholder("x"), [1, 0])),))
    assert partition(graph, lambda node: node.op == "call_function") == []


@pytest.mark.parametrize("seed", range(20))
def test_a_merge_is_refused_exactly_if_a_path_leads_through_others(seed):
    gm = random_graph(seed, size=10)
    for a in gm.graph.nodes:
        for b in gm.graph.nodes:
            if a < b:
                allowed = Condensation(gm.graph).merge(a, b)
                assert allowed != reaches({a}, {b}, without={b}), (seed, a, b)
