"""What nobody needs goes; what does something stays, though nobody uses its result."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import PASSES, fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, normal, same

Tensor = torch.Tensor
X = normal(3, 4)


def _dead(x: Tensor) -> Tensor:
    unused = torch.relu(x) + 1
    unused.exp()
    return x * 2


def test_unused_nodes_go_with_all_that_only_they_used() -> None:
    result = fused(_dead, (X,), "dead_code", count=3)
    assert count_operators(result.graph_module) == {"operator.mul": 1}
    same(_dead, result, (X,))


def _changed(x: Tensor) -> Tensor:
    h = x * 2
    h.add_(1)
    return h


def _copied(x: Tensor) -> Tensor:
    h = torch.zeros_like(x)
    h[0].copy_(x[1])
    return h


def _written_out(x: Tensor) -> Tensor:
    h = torch.zeros_like(x)
    torch.exp(x, out=h)
    return h


def _assigned(x: Tensor) -> Tensor:
    h = x * 2
    torch.relu_(h)
    return h


def _random(x: Tensor) -> Tensor:
    F.dropout(x, 0.5, training=True)
    return F.dropout(x, 0.5, training=True)


EFFECTS: dict[str, Callable[[Tensor], Tensor]] = {
    "add_": _changed,
    "copy_ into a view": _copied,
    "out": _written_out,
    "relu_": _assigned,
    "random": _random,
}


@pytest.mark.parametrize("case", EFFECTS)
def test_what_has_an_effect_stays(case: str) -> None:
    result = fuse(EFFECTS[case], (X,), ("dead_code",))
    assert result.num_matches == 0
    torch.manual_seed(0)
    expected = EFFECTS[case](X.clone())
    torch.manual_seed(0)
    assert torch.equal(result.graph_module(X.clone()), expected)


def _backward(x: Tensor) -> Tensor:
    total = (x * x).sum()
    total.backward()
    return x * 2


def test_a_call_for_its_effect_stays() -> None:
    gm = torch.fx.symbolic_trace(_backward)
    result = PASSES["dead_code"]().call(gm)
    assert "Tensor.backward" in count_operators(result.graph_module)
    assert result.num_matches == 0


def test_a_method_that_assigns_stays() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_method("__setitem__", (x, 0, 1.0))
    graph.output(x)
    assert PASSES["dead_code"]().call(torch.fx.GraphModule({}, graph)).num_matches == 0


class KeepsStatistics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear, self.unused = nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.norm(x)
        self.unused(x)
        return self.linear(x)


def test_modules_that_keep_statistics_stay_and_parameters_stay_in_the_state_dict() -> None:
    program = KeepsStatistics()
    result = fused(program, (X,), "dead_code")
    assert count_operators(result.graph_module) == {"torch.nn.BatchNorm1d": 1, "torch.nn.Linear": 1}
    same(program, result, (X,))


def test_dropout_that_can_never_draw_is_dead() -> None:
    fused(lambda x: (F.dropout(x, 0.5, training=False), x)[1], (X,), "dead_code")
    fused(lambda x: (F.dropout(x, 0.0, training=True), x)[1], (X,), "dead_code")
