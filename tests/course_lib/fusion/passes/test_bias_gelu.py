"""The pass fuses every spelling of gelu(x + bias), and says why it leaves look-alikes alone."""

import copy
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.errors import FusionError
from course_lib.fusion import FusionResult, fuse_bias_gelu
from course_lib.graph import cost, count_operators, from_data, propagate_shapes, to_data

FUSED = "torch.ops.course_lib.bias_gelu"
X, B = (4, 6), (6,)
Body = Callable[[fx.Graph, fx.Node, fx.Node], object]


class Named(nn.GELU):
    pass


class Own(nn.GELU):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


def _root() -> nn.Module:
    root = nn.Module()
    root.exact, root.tanh, root.named, root.own, root.hooked = nn.GELU(), nn.GELU("tanh"), Named(), Own(), nn.GELU()
    root.hooked.register_forward_hook(lambda *_: None)
    root.bias = nn.Parameter(torch.randn(6))
    return root.double()


def _build(body: Body, shapes: Sequence[tuple[int, ...]] = (X, B), dtypes: Sequence[torch.dtype] = ()) -> Any:
    """Build a graph by hand, with inputs x and b, and the example inputs that belong to it."""
    graph = fx.Graph()
    x, b = graph.placeholder("x"), graph.placeholder("b")
    graph.output(body(graph, x, b))
    gm = fx.GraphModule(_root(), graph)
    dtypes = dtypes or (torch.float64, torch.float64)
    inputs = [torch.randn(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return propagate_shapes(gm, inputs), inputs


def _gelu(graph: fx.Graph, value: fx.Node, **kwargs: Any) -> fx.Node:
    return graph.call_function(F.gelu, (value,), kwargs)


SPELLINGS: dict[str, Body] = {
    "operator": lambda g, x, b: _gelu(g, g.call_function(operator.add, (x, b))),
    "commuted": lambda g, x, b: _gelu(g, g.call_function(operator.add, (b, x))),
    "torch_add": lambda g, x, b: _gelu(g, g.call_function(torch.add, (x, b))),
    "torch_add_by_name": lambda g, x, b: _gelu(g, g.call_function(torch.add, (), {"other": b, "input": x})),
    "torch_add_with_alpha_one": lambda g, x, b: _gelu(g, g.call_function(torch.add, (x, b), {"alpha": 1})),
    "torch_add_with_alpha_one_point_zero": lambda g, x, b: _gelu(g, g.call_function(torch.add, (x, b), {"alpha": 1.0})),
    "method": lambda g, x, b: _gelu(g, g.call_method("add", (x, b))),
    "method_commuted": lambda g, x, b: _gelu(g, g.call_method("add", (b,), {"other": x})),
    "gelu_by_name": lambda g, x, b: g.call_function(F.gelu, (), {"input": g.call_function(operator.add, (x, b))}),
    "tanh": lambda g, x, b: _gelu(g, g.call_function(operator.add, (x, b)), approximate="tanh"),
    "exact_by_name": lambda g, x, b: _gelu(g, g.call_function(operator.add, (x, b)), approximate="none"),
    "module": lambda g, x, b: g.call_module("exact", (g.call_function(operator.add, (x, b)),)),
    "module_tanh": lambda g, x, b: g.call_module("tanh", (g.call_function(operator.add, (x, b)),)),
    "module_of_a_class_with_another_name": lambda g, x, b: g.call_module("named", (_sum(g, x, b),)),
    "module_by_name": lambda g, x, b: g.call_module("exact", (), {"input": g.call_function(operator.add, (x, b))}),
    "parameter": lambda g, x, b: _gelu(g, g.call_function(operator.add, (x, g.get_attr("bias")))),
    "unrelated_mutation_between": lambda g, x, b: _with_another_sum_between(g, x, b),
}


def _with_another_sum_between(graph: fx.Graph, x: fx.Node, b: fx.Node) -> fx.Node:
    total = graph.call_function(operator.add, (x, b))
    other = graph.call_method("add_", (graph.call_function(operator.mul, (x, 3)), b))
    return graph.call_function(operator.mul, (_gelu(graph, total), other))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_fused_and_computes_the_same(spelling: str) -> None:
    gm, inputs = _build(SPELLINGS[spelling])
    before = count_operators(gm)
    result = fuse_bias_gelu(gm)
    after = count_operators(result.graph_module)
    assert result.num_matches == 1
    assert result.rejected == ()
    assert after.pop(FUSED) == 1
    assert sum(before.values()) - sum(after.values()) == 2
    outputs, gradients = [], []
    for module in (gm, result.graph_module):
        given = [tensor.clone().requires_grad_() for tensor in inputs]
        outputs.append(module(*given))
        outputs[-1].cos().sum().backward()
        gradients.append([tensor.grad for tensor in given])
    torch.testing.assert_close(*outputs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def _sum(graph: fx.Graph, x: object, b: object, **kwargs: Any) -> fx.Node:
    return graph.call_function(torch.add, cast(Any, (x, b)), kwargs)


def _used_twice(graph: fx.Graph, x: fx.Node, b: fx.Node) -> fx.Node:
    total = _sum(graph, x, b)
    return graph.call_function(operator.mul, (_gelu(graph, total), total))


def _returned(graph: fx.Graph, x: fx.Node, b: fx.Node) -> tuple[fx.Node, fx.Node]:
    total = _sum(graph, x, b)
    return _gelu(graph, total), total


def _changed(changes: str, *, view: bool = False, late: bool = False) -> Body:
    def body(graph: fx.Graph, x: fx.Node, b: fx.Node) -> fx.Node:
        total = _sum(graph, x, b)
        target = {"x": x, "b": b}[changes]
        target = graph.call_method("view", (target, -1)) if view else target
        result = _gelu(graph, total) if late else None
        graph.call_method("mul_", (target, 2))
        return result or _gelu(graph, total)

    return body


def _computed_approximation(graph: fx.Graph, x: fx.Node, b: fx.Node) -> fx.Node:
    return _gelu(graph, _sum(graph, x, b), approximate=graph.call_function(operator.getitem, (["tanh"], 0)))


LOOKALIKES: dict[str, tuple[Body, str]] = {
    "alpha_two": (lambda g, x, b: _gelu(g, _sum(g, x, b, alpha=2)), "alpha"),
    "a_number": (lambda g, x, b: _gelu(g, _sum(g, x, 1.0)), "bias shape"),
    "a_number_first": (lambda g, x, b: _gelu(g, g.call_function(operator.add, (1.0, x))), "bias shape"),
    "the_same_twice": (lambda g, x, b: _gelu(g, _sum(g, x, x)), "bias shape"),
    "in_place_method": (lambda g, x, b: _gelu(g, g.call_method("add_", (x, b))), "in place"),
    "in_place_operator": (lambda g, x, b: _gelu(g, g.call_function(operator.iadd, (x, b))), "in place"),
    "sum_into_out": (lambda g, x, b: _gelu(g, _sum(g, x, b, out=g.call_function(torch.empty_like, (x,)))), "in place"),
    "used_twice": (_used_twice, "other users"),
    "returned": (_returned, "is an output"),
    "a_subclass": (lambda g, x, b: g.call_module("own", (_sum(g, x, b),)), "subclass"),
    "hooks": (lambda g, x, b: g.call_module("hooked", (_sum(g, x, b),)), "hooks"),
    "a_computed_approximation": (_computed_approximation, "approximate"),
    "x_changes_between": (_changed("x"), "mutation"),
    "the_bias_changes_between": (_changed("b"), "mutation"),
    "a_view_of_x_changes_between": (_changed("x", view=True), "mutation"),
    "x_changes_afterwards": (_changed("x", late=True), "mutation"),
}


def _assert_left_alone(gm: fx.GraphModule, rule: str) -> FusionResult:
    result = fuse_bias_gelu(gm)
    assert result.num_matches == 0
    assert [refusal.rule for refusal in result.rejected] == [rule]
    assert count_operators(result.graph_module) == count_operators(gm)
    assert result.graph_module.code == gm.code
    return result


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    body, rule = LOOKALIKES[case]
    gm, _ = _build(body)
    result = _assert_left_alone(gm, rule)
    (refusal,) = result.rejected
    assert set(refusal.nodes) <= {node.name for node in gm.graph.nodes}
    assert refusal.reason in str(result)


WRONG_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "residual": ((4, 6), (4, 6)),
    "one_row": ((4, 6), (1, 6)),
    "one_number": ((4, 6), (1,)),
    "scalar": ((4, 6), ()),
    "over_the_first_dimension": ((6, 1), (6,)),
}


@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_a_bias_of_another_shape_is_left_alone(case: str) -> None:
    gm, _ = _build(SPELLINGS["operator"], shapes=WRONG_SHAPES[case])
    _assert_left_alone(gm, "bias shape")


def test_two_dtypes_are_left_alone() -> None:
    gm, _ = _build(SPELLINGS["operator"], dtypes=(torch.float64, torch.float32))
    _assert_left_alone(gm, "dtype")


def test_without_shapes_they_are_asked_for_when_the_graph_runs() -> None:
    gm = fx.symbolic_trace(lambda x, b: F.gelu(x + b))
    result = fuse_bias_gelu(gm)
    assert [module.reason for module in result.checked.values()] == [
        "the shape of x is not known; run propagate_shapes(gm, example_inputs) first"
    ]


def test_shapes_from_pytorchs_own_propagation_are_enough() -> None:
    from torch.fx.passes.shape_prop import ShapeProp

    gm = fx.symbolic_trace(lambda x, b: F.gelu(x + b))
    ShapeProp(gm).propagate(torch.randn(X), torch.randn(B))
    assert fuse_bias_gelu(gm).num_matches == 1


def test_other_activations_and_gelu_of_something_else_are_no_matches() -> None:
    for program in (lambda x, b: F.silu(x + b), lambda x, b: F.gelu(x * b), lambda x, b: F.gelu(x) + b):
        gm = propagate_shapes(fx.symbolic_trace(program), [torch.randn(X), torch.randn(B)])
        result = fuse_bias_gelu(gm)
        assert result.num_matches == 0
        assert result.rejected == ()


class Stack(nn.Module):
    """Three fusable sums, one that is not, and modules that must survive."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6, bias=False)
        self.biases = nn.ParameterList(torch.randn(6) for _ in range(3))
        self.act = nn.GELU("tanh")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        for bias in self.biases:
            x = self.act(self.linear(x) + bias)
        return F.gelu(x + residual)


def _stack() -> tuple[fx.GraphModule, torch.Tensor]:
    x = torch.randn(5, 6)
    return propagate_shapes(fx.symbolic_trace(Stack()), [x]), x


def test_all_matches_of_a_graph_are_fused_and_launches_go_down() -> None:
    gm, x = _stack()
    result = fuse_bias_gelu(gm)
    assert result.num_matches == 3
    assert [refusal.rule for refusal in result.rejected] == ["bias shape"]
    torch.testing.assert_close(result.graph_module(x), gm(x))
    assert cost(gm, (x,)).launches - cost(result.graph_module, (x,)).launches == 3
    assert "act" not in dict(result.graph_module.named_modules())


def test_a_match_that_feeds_another_is_fused_as_well() -> None:
    inputs = [torch.randn(X), torch.randn(B)]
    gm = propagate_shapes(fx.symbolic_trace(lambda x, b: F.gelu(F.gelu(x + b) + b)), inputs)
    result = fuse_bias_gelu(gm)
    assert result.num_matches == 2
    torch.testing.assert_close(result.graph_module(*inputs), gm(*inputs))


def test_a_second_run_changes_nothing() -> None:
    once = fuse_bias_gelu(_stack()[0])
    twice = fuse_bias_gelu(once.graph_module)
    assert twice.num_matches == 0
    assert twice.graph_module.code == once.graph_module.code
    assert [(r.nodes, r.rule) for r in twice.rejected] == [(r.nodes, r.rule) for r in once.rejected]


def test_the_graph_that_was_given_is_untouched_and_shares_its_parameters() -> None:
    gm, x = _stack()
    code, modules, metas = gm.code, list(gm.named_modules()), [copy.copy(node.meta) for node in gm.graph.nodes]
    fused = fuse_bias_gelu(gm).graph_module
    assert gm.code == code
    assert list(gm.named_modules()) == modules
    assert [node.meta.keys() for node in gm.graph.nodes] == [meta.keys() for meta in metas]
    assert {id(p) for p in fused.parameters()} == {id(p) for p in gm.parameters()}
    assert fused.state_dict().keys() == gm.state_dict().keys()
    fused(x).sum().backward()
    assert all(parameter.grad is not None for parameter in gm.parameters())


@pytest.mark.parametrize("training", [True, False])
def test_training_flag_and_metadata_are_carried_over(training: bool) -> None:
    gm, _ = _stack()
    fused = fuse_bias_gelu(gm.train(training)).graph_module
    assert fused.training == training
    assert all("val" in node.meta for node in fused.graph.nodes)


def test_the_fused_graph_can_be_carried_as_data() -> None:
    gm, x = _stack()
    fused = fuse_bias_gelu(gm).graph_module
    torch.testing.assert_close(from_data(*to_data(fused))(x), gm(x))


def test_something_else_than_a_graph_is_refused() -> None:
    with pytest.raises(FusionError, match="expects a torch"):
        fuse_bias_gelu(cast(fx.GraphModule, nn.GELU()))
