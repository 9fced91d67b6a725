"""Graphs with levels of `torch.func` are left as they are, and a failed run leaves no level behind."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch._C import _functorch

from course_lib.capture import capture
from course_lib.errors import GraphError
from course_lib.fusion import fuse
from course_lib.graph import propagate_shapes

X, BIAS = torch.linspace(-2.0, 2.0, 32).reshape(4, 8), torch.linspace(0.0, 1.0, 8)
Program = Callable[[torch.Tensor, torch.Tensor], Any]


def _loss(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + b).square().sum()


PROGRAMS: dict[str, Program] = {
    "vmap": lambda x, b: torch.func.vmap(lambda row: F.gelu(row + b))(x),
    "grad": lambda x, b: torch.func.grad(lambda t: _loss(t, b))(x),
    "jvp": lambda x, b: torch.func.jvp(lambda t: F.gelu(t + b), (x,), (x,))[1],
    "jacrev": lambda x, b: torch.func.jacrev(lambda t: F.gelu(x + t).sum(0))(b),
    "jacfwd": lambda x, b: torch.func.jacfwd(lambda t: F.gelu(x + t).sum(0))(b),
    "hessian": lambda x, b: torch.func.hessian(lambda t: _loss(x, t))(b),
    "vmap of grad": lambda x, b: torch.func.vmap(torch.func.grad(lambda row: _loss(row, b)))(x),
}


class PerSample(nn.Module):
    def forward(self, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(lambda row: F.gelu(row + b))(x)


@pytest.fixture(autouse=True)
def _levels_end_with_the_test() -> Any:
    yield
    _functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)


def _ordinary() -> bool:
    """Return whether torch works as it does without a level."""
    return _functorch.peek_interpreter_stack() is None and bool(torch.randn(2).add_(1).isfinite().all())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_fused_within_dynamo_computes_what_it_did(name: str) -> None:
    reasons: list[str] = []

    def backend(gm: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        result = fuse(gm, inputs)
        reasons.extend(one.rule for one in result.rejected)
        return result.graph_module.forward

    compiled = torch.compile(PROGRAMS[name], backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(X, BIAS), PROGRAMS[name](X, BIAS))
    assert reasons == ["torch.func level"]
    assert _ordinary()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_captured_program_is_left_as_it_is(name: str) -> None:
    gm = capture(PROGRAMS[name], (X, BIAS), mode="dynamo").graph_module
    places = [str(node.target) for node in gm.graph.find_nodes(op="placeholder")]
    inputs = [X if "x" in place.lower() else BIAS for place in places]
    result = fuse(gm, inputs)
    torch.testing.assert_close(result.graph_module(*inputs)[0], PROGRAMS[name](X, BIAS))
    assert (result.num_matches, result.cost_before) == (0, result.cost_after)
    assert _ordinary()


def test_an_exported_program_is_left_as_it_is() -> None:
    result = fuse(torch.export.export(PerSample(), (X, BIAS)), (X, BIAS))
    torch.testing.assert_close(result.graph_module(X, BIAS), PerSample()(X, BIAS))
    assert "_vmap_increment_nesting begins a level of torch.func" in result.explain()
    assert _ordinary()


@pytest.mark.parametrize("run", [propagate_shapes, fuse], ids=lambda run: run.__name__)
def test_a_graph_that_fails_at_a_level_leaves_none(run: Callable[..., Any]) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch._functorch.predispatch._vmap_increment_nesting, (4, "error"))
    graph.output(graph.call_function(torch.mm, (x, x)))
    with pytest.raises(GraphError, match="cannot run on these example inputs"):
        run(fx.GraphModule(nn.Module(), graph), (X,))
    assert _ordinary()


def test_a_graph_that_fails_within_autocast_leaves_it() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cpu", torch.bfloat16, True, False))
    graph.output(graph.call_function(torch.mm, (x, x)))
    with pytest.raises(GraphError):
        propagate_shapes(fx.GraphModule(nn.Module(), graph), (X,))
    assert not torch.is_autocast_enabled("cpu")
    assert torch.mm(X, X.t()).dtype == torch.float32
