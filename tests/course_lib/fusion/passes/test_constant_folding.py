"""What depends on no input is computed once and for all, unless each run needs a new one."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import fx, nn

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

NAME = "constant_folding"
X = normal(4, 4)


def _graph(build: Callable[[fx.Graph, fx.Node], object]) -> fx.GraphModule:
    """Build by hand what a symbolic trace would compute at once: calls without traced operands."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(build(graph, x))
    root = nn.Module()
    root.register_buffer("buffer", torch.ones(4, 4))
    return fx.GraphModule(root, graph)


def _mask(graph: fx.Graph, dtype: torch.dtype | None = None) -> fx.Node:
    ones = graph.call_function(torch.ones, (4, 4), {"dtype": dtype})
    return graph.call_method("tril", (ones,), {"diagonal": 1})


def test_a_chain_of_constants_becomes_one_and_computes_the_same() -> None:
    gm = _graph(lambda g, x: g.call_function(torch.mul, (x, _mask(g))))
    result = fused(gm, (X,), NAME)
    cleaned = fuse(result.graph_module, (X,), ("dead_code",)).graph_module
    assert count_operators(cleaned) == {"Constant": 1, "torch.mul": 1}
    assert cleaned.state_dict().keys() == gm.state_dict().keys()
    same(gm, result, (X,), dtypes=(torch.float64, torch.float32, torch.bfloat16))
    assert torch.equal(copy.deepcopy(cleaned).double()(X), cleaned(X))


def test_numbers_are_written_where_they_are_used() -> None:
    gm = _graph(lambda g, x: g.call_function(torch.div, (x, g.call_function(math.sqrt, (64,)))))
    result = fused(gm, (X,), NAME)
    assert result.graph_module.graph.find_nodes(op="call_function", target=torch.div)[0].args[1] == 8.0
    same(gm, result, (X,))


def _changed(graph: fx.Graph, x: fx.Node) -> fx.Node:
    mask = _mask(graph)
    graph.call_method("add_", (mask, 1))
    return graph.call_function(torch.mul, (x, mask))


def _returned_as_a_view(graph: fx.Graph, x: fx.Node) -> tuple[fx.Node, fx.Node]:
    mask = _mask(graph)
    return graph.call_function(torch.mul, (x, mask)), graph.call_function(torch.transpose, (mask, 0, 1))


REFUSED = {"it changes": (_changed, "mutation"), "a view is returned": (_returned_as_a_view, "is an output")}


@pytest.mark.parametrize("case", REFUSED)
def test_a_constant_that_must_be_new_each_time_stays(case: str) -> None:
    build, rule = REFUSED[case]
    gm = _graph(build)
    result = fuse(gm, (X,), (NAME,))
    assert result.num_matches == 0
    assert {refusal.rule for refusal in result.rejected} == {rule}
    assert torch.equal(result.graph_module(X)[0], result.graph_module(X)[0])


def test_buffers_random_numbers_and_large_tensors_are_no_constants() -> None:
    def build(graph: fx.Graph, x: fx.Node) -> fx.Node:
        total = graph.call_function(torch.add, (graph.get_attr("buffer"), 1))
        noise = graph.call_function(torch.rand, (4, 4))
        return graph.call_function(torch.addcmul, (x, total, noise))

    assert fuse(_graph(build), (X,), (NAME,)).num_matches == 0


def test_a_large_constant_is_cheaper_to_compute() -> None:
    gm = _graph(lambda g, x: g.call_function(torch.sum, (g.call_function(torch.ones, (4096, 4096)),)))
    assert fuse(gm, (X,), (NAME,)).num_matches == 0
    large = _graph(lambda g, x: g.call_function(torch.mul, (x, g.call_function(torch.ones, (3000, 3000, 4, 4)))))
    assert left_alone
    assert [refusal.rule for refusal in fuse(large, (X,), (NAME,)).rejected] == ["traffic"]


def test_a_constant_made_of_a_folded_constant_is_folded_too() -> None:
    def graph(g: fx.Graph, x: fx.Node) -> fx.Node:
        positions = g.call_function(torch.arange, (4,))
        first = g.call_function(torch.mul, (x, positions))
        return g.call_function(torch.add, (first, g.call_function(torch.add, (positions, 1))))

    gm = _graph(graph)
    result = fused(gm, (X,), NAME, count=2)
    same(gm, result, (X,))


def test_a_chain_of_a_thousand_constants_is_folded() -> None:
    def graph(g: fx.Graph, x: fx.Node) -> fx.Node:
        value = g.call_function(torch.ones, (4,))
        for _ in range(1000):
            value = g.call_function(torch.add, (value, 1.0))
        return g.call_function(torch.mul, (x, value))

    gm = _graph(graph)
    assert torch.equal(fuse(gm, (X,), (NAME,)).graph_module(X), gm(X))


def test_what_reads_a_constant_that_is_changed_in_place_is_computed_each_time() -> None:
    def graph(g: fx.Graph, x: fx.Node) -> fx.Node:
        mask = _mask(g)
        g.call_method("add_", (mask, x))
        return g.call_function(torch.mul, (x, g.call_function(torch.add, (mask, 1))))

    gm = _graph(graph)
    assert torch.equal(fuse(gm, (X,), (NAME,)).graph_module(X), gm(X))


def test_a_constant_folded_in_inference_mode_is_one_to_train_with() -> None:
    gm = _graph(lambda g, x: g.call_function(torch.mul, (x, _mask(g))))
    with torch.inference_mode():
        result = fuse(gm, (X,), (NAME,))
    x = X.clone().requires_grad_()
    result.graph_module(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(4, 4).tril(1))  # type: ignore[arg-type]  # it has a gradient now
