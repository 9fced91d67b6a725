"""Graphs from data are the graphs that TorchScript itself would hold."""

import pytest
import torch

from course_lib.capture.nested_graphs import graph_of
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
