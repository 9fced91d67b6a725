"""A pattern of IR is replaced wherever its nodes are; the graph that was given stays as it was."""

import pytest
import torch

from course_lib.capture import capture
from course_lib.capture.executor_flags import has_llvm
from course_lib.capture.script_rewriting import rewrite_script
from course_lib.errors import CaptureError

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
