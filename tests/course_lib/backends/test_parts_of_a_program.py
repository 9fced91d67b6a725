"""PyTorch's partitioner and `split_module` serve as a backend too: parts are compiled, the rest falls back."""

import operator

import pytest
import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.fx.passes.split_module import split_module

from course_lib.backends import lower
from course_lib.backends.toy import ToyTarget
from course_lib.capture import capture
from course_lib.graph import propagate_shapes

TAKEN = {operator.add, operator.mul, operator.matmul, torch.relu, torch.tanh, torch.sigmoid}


class Takes(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.target in TAKEN


def scores(x, w, u):
    h = torch.cumsum((torch.relu(x + 1) * 0.5) @ w, 0)
    return torch.tanh(h) * h + torch.sigmoid(h).flip(0) @ u


def parts_of(graph_module):
    partitioner = CapabilityBasedPartitioner(graph_module, Takes(), allows_single_node_partition=True)
    return [set(part.nodes) for part in partitioner.propose_partitions()]


def split_at_parts(graph_module, rest=None):
    part_of = {node: f"part_{number}" for number, nodes in enumerate(parts_of(graph_module)) for node in nodes}
    return split_module(graph_module, graph_module, lambda node: part_of.get(node, rest or node.name))


@pytest.fixture
def inputs():
    torch._dynamo.reset()
    yield [torch.randn(64, 64) for _ in range(3)]
    torch._dynamo.reset()


def test_the_partitioner_never_joins_what_an_operator_outside_lies_between(inputs):
    graph = capture(scores, inputs, mode="dynamo").graphs["graph"]
    names = sorted(sorted(node.name for node in part) for part in parts_of(graph))
    assert names == [["add", "matmul", "mul", "relu"], ["add_1", "matmul_1", "mul_1", "tanh"], ["sigmoid"]]


def test_what_is_left_cannot_be_one_part(inputs):
    graph = capture(scores, inputs, mode="dynamo").graphs["graph"]
    with pytest.raises(RuntimeError, match="cycle"):
        split_at_parts(graph, rest="rest")


def test_parts_are_compiled_the_rest_falls_back_and_values_agree(inputs):
    became = {}

    def backend(graph_module, example_inputs):
        split = propagate_shapes(split_at_parts(graph_module), example_inputs)
        for call in split.graph.find_nodes(op="call_module"):
            if "part" not in call.target:
                became[call.target] = "rest"
                continue
            part = lower(split.get_submodule(call.target), [read.meta["val"] for read in call.args], ToyTarget())
            setattr(split, call.target, part.graph_module)
            became[call.target] = (part.before.launches, part.after.launches)
        return split

    with torch.no_grad():
        ours = torch.compile(scores, backend=backend)(*inputs)
    torch.testing.assert_close(ours, scores(*inputs), rtol=1e-4, atol=1e-4)
    assert sorted(became.values(), key=str) == [(1, 1), (4, 1), (4, 2), "rest", "rest"]
