"""Graphs from data are the graphs that TorchScript itself would hold."""

import pytest
import torch

from course_lib.capture import capture
from course_lib.capture.script_graphs import graph_of, has_llvm, rewrite_script
from course_lib.errors import CaptureError

EXP = {"ir": "graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x)\n  return (%y)", "held": []}
GROUP = {
    "ir": "graph(%x : Tensor):\n  %y : Tensor = prim::TensorExprGroup[held=0](%x)\n  return (%y)",
    "held": [EXP],
}
BRANCH = {
    "ir": (
        "graph(%x : Tensor, %c : bool):\n"
        "  %r : Tensor = prim::If(%c)\n"
        "    block0():\n"
        "      %a : Tensor = prim::DifferentiableGraph[held=0](%x)\n"
        "      -> (%a)\n"
        "    block1():\n"
        "      -> (%x)\n"
        "  return (%r)"
    ),
    "held": [GROUP],
}


def test_a_held_graph_is_the_nodes_own():
    (node,) = graph_of(GROUP).nodes()
    assert [inner.kind() for inner in node.g("Subgraph").nodes()] == ["aten::exp"]


def test_graphs_are_held_inside_blocks_and_inside_one_another():
    (branch,) = graph_of(BRANCH).nodes()
    first, _ = branch.blocks()
    (around,) = first.nodes()
    (group,) = around.g("Subgraph").nodes()
    assert (around.kind(), group.kind()) == ("prim::DifferentiableGraph", "prim::TensorExprGroup")
    assert group.hasAttribute("Subgraph")


def test_the_graph_can_be_printed_as_torchscript_does():
    assert "with prim::TensorExprGroup_0 = graph" in str(graph_of(GROUP))
    assert isinstance(graph_of(EXP), torch._C.Graph)


def test_text_that_is_no_graph_is_refused():
    with pytest.raises(CaptureError, match="cannot parse"):
        graph_of({"ir": "graph(:", "held": []})


SUM_RELU = "graph(%x, %b, %one):\n  %s = aten::add(%x, %b, %one)\n  %r = aten::relu(%s)\n  return (%r)"
RELU6 = "graph(%x, %b, %one):\n  %s = aten::add(%x, %b, %one)\n  %r = aten::relu6(%s)\n  return (%r)"


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


def test_every_match_is_replaced_in_a_copy():
    graph = capture(lambda x, b: torch.relu(x + b) * torch.relu(b + x), (torch.ones(2),) * 2, mode="trace").graph
    rewritten = rewrite_script(graph, SUM_RELU, RELU6)
    assert kinds(rewritten).count("aten::relu6") == 2
    assert kinds(graph).count("aten::relu") == 2


def test_a_look_alike_without_the_nodes_is_left_alone():
    graph = capture(lambda x, b: torch.relu(x * b), (torch.ones(2),) * 2, mode="trace").graph
    assert kinds(rewrite_script(graph, SUM_RELU, RELU6)) == kinds(graph)


def test_a_pattern_that_is_no_graph_is_refused():
    with pytest.raises(CaptureError, match="cannot use this pattern"):
        rewrite_script(capture(torch.relu, (torch.ones(2),), mode="trace").graph, "graph(", RELU6)


def test_whether_there_is_llvm_is_a_plain_answer():
    assert has_llvm() in (True, False)
