"""The fusion of notebook 17 is right on the example of its text, and has the defects that the notebook asks for."""

import copy

import pytest
import torch
from torch import fx
from torch.nn import functional as F

from course_lib.fusion.machine_written import fuse_add_norm

INPUTS = (torch.randn(3, 4), torch.randn(3, 4), torch.randn(4), torch.randn(4))
DEFECTS = {
    "a keyword": lambda x, y, w, b: F.layer_norm(torch.add(x, y, alpha=3), (4,), w, b),
    "another reader": lambda x, y, w, b: (s := x + y, F.layer_norm(s, (4,), w, b) + s)[1],
    "a write": lambda x, y, w, b: (s := x + y, x.neg_(), F.layer_norm(s, (4,), w, b))[2],
}
KEPT = {
    "no weight": lambda x, y, w, b: F.layer_norm(x + y, (4,)),
    "a number": lambda x, y, w, b: F.layer_norm(x + 2, (4,), w, b),
    "a product": lambda x, y, w, b: F.layer_norm(x * y, (4,), w, b),
    "an input": lambda x, y, w, b: F.layer_norm(x, (4,), w, b),
}


def both(program):
    graph = fx.symbolic_trace(program)
    fused = fuse_add_norm(graph)
    return graph(*copy.deepcopy(INPUTS)), fused(*copy.deepcopy(INPUTS)), fused


def test_the_example_is_right_and_one_call():
    expected, found, fused = both(lambda x, y, w, b: F.layer_norm(x + y, (4,), w, b, 1e-3))
    torch.testing.assert_close(found, expected)
    assert [node.op for node in fused.graph.nodes].count("call_function") == 1


@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_gives_other_numbers_without_an_error(name):
    expected, found, _ = both(DEFECTS[name])
    assert not torch.allclose(expected, found)


@pytest.mark.parametrize("name", KEPT)
def test_all_else_stays(name):
    expected, found, fused = both(KEPT[name])
    torch.testing.assert_close(found, expected)
    assert F.layer_norm in {node.target for node in fused.graph.nodes}
