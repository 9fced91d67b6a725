"""Values share memory where real tensors would, and to look at a BatchNorm does not make it count."""

import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import fuse
from course_lib.fusion.storage import mutations_of
from course_lib.fusion.surgery import describe_new_nodes
from course_lib.graph import propagate_shapes


def _program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    start = x + y
    part = x[0]
    part.mul_(2)
    y.add_(x)
    return start


def test_changes_are_found_through_views_and_only_where_memory_is_shared() -> None:
    gm = propagate_shapes(fx.symbolic_trace(_program), [torch.randn(3), torch.randn(3)])
    nodes = {node.name: node for node in gm.graph.nodes}
    assert [node.name for node in mutations_of([nodes["x"]], after=nodes["add"])] == ["mul_"]
    assert [node.name for node in mutations_of([nodes["y"]], after=nodes["add"])] == ["add_"]
    assert mutations_of([nodes["add"]], after=nodes["add"]) == []


def test_without_shapes_any_change_is_suspected() -> None:
    nodes = {node.name: node for node in fx.symbolic_trace(_program).graph.nodes}
    assert [node.name for node in mutations_of([nodes["x"]], after=nodes["add"])] == ["mul_", "add_"]


def program_with_a_tied_bias() -> fx.GraphModule:
    """Dense, dropout, residual, norm; after the dense layer its bias is written to, under another name."""
    root = nn.Module()
    root.dense, root.norm = nn.Linear(8, 8), nn.LayerNorm(8)
    root.also = root.dense.bias
    graph = fx.Graph()
    x, step = graph.placeholder("x"), graph.placeholder("step")
    dense = graph.call_module("dense", (x,))
    graph.call_method("add_", (graph.get_attr("also"), step))
    total = graph.call_function(torch.add, (graph.call_function(F.dropout, (dense, 0.1, False)), x))
    graph.output(graph.call_module("norm", (total,)))
    return fx.GraphModule(root, graph)


def test_a_write_through_the_other_name_of_a_tied_parameter_is_seen() -> None:
    gm = program_with_a_tied_bias()
    inputs = torch.randn(4, 8), torch.randn(8)
    with torch.no_grad():
        result = fuse(gm, inputs)
        expected = fx.Interpreter(gm).run(*inputs)
        gm.also.sub_(inputs[1])
        assert result.graph_module.also is gm.also  # the fused program shares it
        torch.testing.assert_close(result.graph_module(*inputs), expected)
    assert "mutation" in {one.rule for one in result.rejected}


def test_a_new_call_of_a_batch_norm_in_training_mode_is_described_without_counting() -> None:
    gm = propagate_shapes(fx.symbolic_trace(nn.Sequential(nn.BatchNorm1d(4))), (torch.randn(3, 4),))
    norm = next(iter(gm.graph.find_nodes(op="call_module", target="0")))
    del norm.meta["val"]
    before = int(gm.get_submodule("0").num_batches_tracked)
    describe_new_nodes(gm)
    assert norm.meta["val"].shape == (3, 4)
    assert int(gm.get_submodule("0").num_batches_tracked) == before
