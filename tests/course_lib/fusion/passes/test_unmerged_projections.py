"""Projections that `qkv_merge` keeps apart: their memory is read by position, or a loss gives some of them no gradient.

A parameter without a gradient has None, and an optimiser skips it. With zeros, AdamW decays it.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from tests.course_lib.fusion.passes.rewrites import normal

Tensor = torch.Tensor


def test_a_reader_of_memory_by_position_keeps_the_projections_apart() -> None:
    def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return F.linear(x, w).as_strided((64, 8), (8, 1)) * 2 + torch.relu(F.linear(x, v))

    def through_a_view(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return torch.relu(F.linear(x, w)) + torch.as_strided(F.linear(x, v).view(8, 8, 8), (64, 8), (8, 1))

    inputs = (normal(64, 8), normal(8, 8), normal(8, 8) + 1)
    for one in (program, through_a_view):
        result = fuse(one, inputs, ("qkv_merge",))
        assert [refusal.rule for refusal in result.rejected] == ["strides"]
        torch.testing.assert_close(result.graph_module(*inputs), one(*inputs))


SPELLINGS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "T": (lambda x, w, v, a, b: (x @ w.T + a) * (x @ v.T + b), ("matmul", "matmul_1")),
    "transpose": (lambda x, w, v, a, b: (x @ w.transpose(0, 1) + a) * torch.matmul(x, v.t()), ("matmul", "matmul_1")),
    "beside a layer": (lambda x, w, v, a, b: (x @ w.mT + a) * F.linear(x, v, b), ("matmul",)),
}


@pytest.mark.parametrize("rows", [(64,), (2, 32)])
@pytest.mark.parametrize("case", SPELLINGS)
def test_products_with_transposed_weights_are_left_alone_with_a_reason(case: str, rows: tuple[int, ...]) -> None:
    program, products = SPELLINGS[case]
    inputs = (normal(*rows, 8), normal(8, 8), normal(8, 8) + 1, normal(8), normal(8))
    result = fuse(program, inputs, ("qkv_merge",))
    assert [(one.rule, one.nodes) for one in result.rejected] == [("spelling", products)]
    assert result.rejected[0].reason.startswith("x is multiplied by a transposed weight")
    assert "F.linear(x, weight, bias)" in result.rejected[0].remedy
    torch.testing.assert_close(result.graph_module(*inputs), program(*inputs))


def test_other_products_are_no_projections() -> None:
    inputs = (normal(64, 8), normal(8, 8), normal(8, 8) + 1)
    for program in (
        lambda x, w, v: (x @ w) * (x @ v),
        lambda x, w, v: (x @ w.T) * v.sum(),
        lambda x, w, v: x @ (w + v).T,
    ):
        assert fuse(program, inputs, ("qkv_merge",)).rejected == ()


def test_a_bias_that_is_added_afterwards_is_named() -> None:
    inputs = (normal(64, 8), normal(8, 8), normal(8, 8) + 1, normal(8), normal(8))
    result = fuse(lambda x, w, v, a, b: (F.linear(x, w) + a) * F.linear(x, v, b), inputs, ("qkv_merge",))
    assert {one.rule for one in result.rejected} == {"one bias"}
    assert all("the other has none, since what add adds does not count as one" in one.reason for one in result.rejected)


UNREACHED: dict[str, Callable[[Tensor], Tensor]] = {
    "detached": lambda y: y.detach(),
    "data": lambda y: y.data,
    "its largest": lambda y: y.argmax(-1, keepdim=True),
    "compared": lambda y: (y > 0) * 1.0,
}


@pytest.mark.parametrize("case", UNREACHED)
def test_a_weight_that_has_no_gradient_still_has_none(case: str) -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(8, 8, bias=False) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.query(x) * self.key(x) + UNREACHED[case](self.value(x))

    program, x = Program(), normal(64, 8)
    gm = fuse(program, (x,), ("qkv_merge",)).graph_module
    gm(x).sum().backward()
    assert program.value.weight.grad is None
    assert program.query.weight.grad is not None
    assert len(gm.graph.find_nodes(op="call_function", target=F.linear)) == 1


class Cached(nn.Module):
    """Attention that returns what a cache keeps of keys and values, beside its result."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.returned: Callable[..., object] = lambda q, k, v: q * k + v

    def forward(self, x: Tensor) -> object:
        return self.returned(self.query(x), self.key(x), self.value(x))


# What a program returns, and how many products are left of three.
RESULTS: dict[str, tuple[Callable[..., object], int]] = {
    "one result of all": (lambda q, k, v: q * k + v, 1),
    "two results of all": (lambda q, k, v: (q * k + v, {"sum": (q + k) * v}), 1),
    "each on its own": (lambda q, k, v: (q * 2, k * 2, v * 2), 3),
    "keys and values beside all": (lambda q, k, v: (q * k + v, torch.tanh(k) + v), 2),
    "a query that only one result has": (lambda q, k, v: (k * v, k - v, q.sum()), 2),
    "an unused value": (lambda q, k, v: q * k, 1),
    "a value that is only compared": (lambda q, k, v: (q * k, v > 0), 2),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_loss_of_some_results_gives_the_gradients_that_it_gave(case: str) -> None:
    program, x = Cached(), normal(64, 8)
    program.returned, products = RESULTS[case]
    gm = fuse(program, (x,), ("qkv_merge", "dead_code")).graph_module
    assert (
        len(gm.graph.find_nodes(op="call_function", target=F.linear)) + len(gm.graph.find_nodes(op="call_module"))
        == products
    )
    for place, result in enumerate(torch.utils._pytree.tree_leaves(program(x))):
        if result.requires_grad:
            found, expected = (_gradients(one, x, place, program) for one in (gm, program))
            assert {name for name, one in found.items() if one is None} == {
                name for name, one in expected.items() if one is None
            }
            torch.testing.assert_close(found, expected)


def _gradients(run: nn.Module, x: Tensor, place: int, program: nn.Module) -> dict[str, Tensor | None]:
    """Return the gradients of the program's parameters for a loss of one result."""
    program.zero_grad()
    torch.utils._pytree.tree_leaves(run(x))[place].sum().backward()
    return {name: one.grad for name, one in program.named_parameters()}


def test_no_optimiser_moves_a_weight_that_a_loss_does_not_use() -> None:
    program, x = Cached(), normal(64, 8)
    program.returned = lambda q, k, v: (q * k, v * 2)
    gm, before = fuse(program, (x,), ("qkv_merge",)).graph_module, program.value.weight.clone()
    optimiser = torch.optim.AdamW(gm.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        gm(x)[0].sum().backward()
        optimiser.step()
    assert torch.equal(program.value.weight, before)


def test_recording_that_a_graph_switches_off_stops_gradients() -> None:
    def program(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        both = F.linear(x, q) * F.linear(x, k)
        value = F.linear(x, v)
        with torch.no_grad():
            shown = value * 2
        return both + shown

    graphs: list[tuple[torch.fx.GraphModule, list[object]]] = []

    def backend(gm: torch.fx.GraphModule, given: list[object]) -> Callable[..., object]:
        graphs.append((gm, given))
        return gm

    inputs = (normal(64, 8), *(nn.Parameter(normal(8, 8) + number) for number in range(3)))
    torch.compile(program, backend=backend)(*inputs)
    gm, given = graphs[0]
    fused = fuse(gm, given, ("qkv_merge",)).graph_module
    fused(*given)[0].sum().backward()
    assert [one.grad is None for one in inputs[1:]] == [False, False, True]
