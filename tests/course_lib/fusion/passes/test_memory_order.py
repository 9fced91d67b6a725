"""Independent nodes are reordered if fewer bytes are then alive; what an effect holds in its place stays there."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion import PASSES, fuse
from course_lib.fusion.passes import memory_order
from course_lib.models import TransformerConfig, TransformerEncoder
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

NAME = "memory_order"
Tensor = torch.Tensor
X = normal(100)
ROW, SQUARE = 400, 40_000  # bytes of one and of a hundred rows


def _branches(x: Tensor) -> Tensor:
    left, right = torch.outer(x, x), torch.outer(x, -x)
    return left.sum(0) - right.sum(0)


def _large_first(x: Tensor) -> Tensor:
    large = torch.outer(x, x)
    small = torch.outer(-x, x).sum(0)
    return large @ small


class _Attributes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(normal(100))
        self.layer = nn.Linear(100, 100)

    def forward(self, x: Tensor) -> Tensor:
        left, right = torch.outer(x, self.weight), self.layer(torch.outer(x, x))
        return left.sum(0) - right.sum(0)


def _views(x: Tensor) -> Tensor:
    left, right = torch.outer(x, x), torch.outer(x, -x)
    first, second = left.t()[0], right.t()[0]
    return first.exp() + second.exp()


def _parts(x: Tensor) -> Tensor:
    left, right = torch.outer(x, x).chunk(2), torch.outer(x, -x).chunk(2)
    return left[0].sum(0) + left[1].sum(0) - right[0].sum(0) - right[1].sum(0)


def _write_of_its_own(x: Tensor) -> Tensor:
    left, right = torch.outer(x, x), torch.outer(x, -x)
    left.mul_(2)
    return left.sum(0) - right.sum(0)


PROGRAMS: dict[str, tuple[Callable[..., object], int, int]] = {  # with the bytes alive at once, before and after
    "two branches": (_branches, 2 * SQUARE + ROW, SQUARE + 2 * ROW),
    "what is needed last is made last": (_large_first, 2 * SQUARE + ROW, SQUARE + 2 * ROW),
    "attributes": (_Attributes(), 3 * SQUARE, 2 * SQUARE),
    "views": (_views, 2 * SQUARE + ROW, SQUARE + 2 * ROW),
    "several results": (_parts, 2 * SQUARE + 2 * ROW, SQUARE + 3 * ROW),
    "a write between its readers": (_write_of_its_own, 2 * SQUARE + ROW, SQUARE + 2 * ROW),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_fewer_bytes_are_alive_at_once_and_the_result_is_the_same(case: str) -> None:
    program, before, after = PROGRAMS[case]
    result = fused(program, (X,), NAME)
    assert result.cost_before == result.cost_after  # launches and bytes
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert (result.cost_before.peak_bytes, result.cost_after.peak_bytes) == (before, after)
    assert f"bytes alive at once: {before:,} before, {after:,} after" in str(result)
    same(program, result, (X,))


def _draws(x: Tensor) -> Tensor:
    large = torch.rand_like(torch.outer(x, x))
    small = torch.rand_like(torch.outer(-x, x)).sum(0)
    return large @ small


def _dropouts(x: Tensor) -> Tensor:
    large = F.dropout(torch.outer(x, x), 0.5, True)
    small = F.dropout(torch.outer(-x, x), 0.5, True).sum(0)
    return large @ small


def _writes(x: Tensor) -> Tensor:
    large = torch.outer(x, x)
    x.neg_()
    return large @ torch.outer(x, x).sum(0)


def _writes_through_a_view(x: Tensor) -> Tensor:
    large = torch.outer(x, x)
    x[:50].neg_()
    return large @ torch.outer(x, x).sum(0)


def _asserts(x: Tensor) -> Tensor:
    large = torch.outer(x, x)
    torch._assert(large.shape[0] == 100, "a hundred")
    return large @ torch.outer(-x, x).sum(0)


LOOK_ALIKES: dict[str, tuple[Callable[..., object], str]] = {
    "draws": (_draws, "random order"),
    "dropouts": (_dropouts, "random order"),
    "write": (_writes, "mutation"),
    "write through a view": (_writes_through_a_view, "mutation"),
    "assertion": (_asserts, "unobserved"),
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_what_an_effect_keeps_in_place_stays_and_is_told(case: str) -> None:
    program, rule = LOOK_ALIKES[case]
    result = left_alone(program, (X,), NAME, rule)
    (refused,) = result.rejected
    assert "bytes would be alive, not" in refused.reason
    torch.manual_seed(0)
    expected = program(X.clone())
    torch.manual_seed(0)
    assert torch.equal(result.graph_module(X.clone()), expected)


def test_nothing_is_moved_past_a_switch() -> None:
    gm = fx.symbolic_trace(_large_first)
    large = next(node for node in gm.graph.nodes if node.op == "call_function")
    with gm.graph.inserting_after(large):
        gm.graph.call_function(torch._C._set_grad_enabled, (True,))
    gm.recompile()
    result = fuse(gm, (X,), (NAME,))
    assert [refused.rule for refused in result.rejected] == ["regime"]
    assert result.num_matches == 0


def test_an_order_that_is_best_already_is_left_without_a_word() -> None:
    result = fuse(lambda x: torch.outer(x, x).sum(0) - torch.outer(x, -x).sum(0), (X,), (NAME,))
    assert result.num_matches == 0
    assert result.rejected == ()


def test_an_order_whose_counted_peak_does_not_fall_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([(100, 100), (100, 100), (100, 100), (90, 110)])
    monkeypatch.setattr(memory_order, "_peaks", lambda gm: next(counts))
    for said in ("100 bytes would be alive at once instead of 100", "110 .* instead of 100, with gradients"):
        result = fuse(_branches, (X,), (NAME,))
        assert [refused.rule for refused in result.rejected] == ["peak"]
        assert re.search(said, result.rejected[0].reason)
        assert [node.name for node in result.graph_module.graph.nodes][1:3] == ["outer", "neg"]


class _Trained(nn.Module):
    """Both results are saved for the backward pass, so that no order lets one go before the other is made."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 100), nn.Linear(8, 100)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.left(x).relu(), self.right(x).relu()
        return left.sum(-1) + right.sum(-1)


def test_an_exported_graph_of_small_operators_is_reordered_as_it_is() -> None:
    tokens = torch.zeros(2, 16, dtype=torch.int64)
    model = TransformerEncoder(TransformerConfig(32, 4, 64, 1, 100, 64)).eval()
    graph = torch.export.export(model, (tokens,)).run_decompositions().module()
    result = fuse(graph, (tokens,), (NAME,))
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_before == result.cost_after
    assert result.cost_after.peak_bytes <= result.cost_before.peak_bytes
    assert torch.equal(result.graph_module(tokens), model(tokens))


def test_what_only_inference_gains_from_is_done_where_no_gradients_are_recorded() -> None:
    inputs = (normal(100, 8),)
    result = fuse(_Trained(), inputs, (NAME,))
    (refused,) = result.rejected
    assert (result.num_matches, refused.rule) == (0, "peak")
    assert "torch.no_grad()" in refused.remedy
    with torch.no_grad():
        program = _Trained()
        result = fuse(program, inputs, (NAME,))
        assert result.num_matches == 1
        same(program, result, inputs)


def test_what_an_earlier_pass_has_changed_is_counted_as_it_is_now() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Tanh()  # which goes with its call

        def forward(self, x: Tensor) -> Tensor:
            self.unused(torch.outer(x, x))
            return _branches(x)

    program = Unused()
    result = fuse(program, (X,), ("dead_code", NAME))
    assert result.num_matches_by_pass == {"dead_code": 2, NAME: 1}
    assert result.cost_after is not None
    assert result.cost_after.peak_bytes == SQUARE + 2 * ROW
    same(program, result, (X,))


def test_without_shapes_nothing_is_moved() -> None:
    result = PASSES[NAME]().call(fx.symbolic_trace(_branches))
    assert result.num_matches == 0
    assert [refused.rule for refused in result.rejected] == ["shape unknown"]


def test_it_runs_only_if_it_is_asked_for() -> None:
    assert fuse(_branches, (X,)).num_matches == 0


def test_many_independent_branches_are_ordered_in_a_moment() -> None:
    def many(x: Tensor) -> Tensor:
        squares = [torch.outer(x, x + number) for number in range(60)]
        return sum(square.sum(0) for square in squares)

    result = fused(many, (X,), NAME)
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_before.peak_bytes > 60 * SQUARE
    assert result.cost_after.peak_bytes < 2 * SQUARE


def test_twice_as_many_branches_take_about_twice_as_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    then, steps = memory_order._Program._then, [0]

    def counted(*args: Any) -> Any:
        steps[-1] += 1
        return then(*args)

    def many(x: Tensor, branches: int) -> Tensor:
        return sum(torch.outer(x, x + number).sum(0) for number in range(branches))

    monkeypatch.setattr(memory_order._Program, "_then", counted)
    for branches in (30, 60, 120):
        steps.append(0)
        fuse(lambda x, branches=branches: many(x, branches), (X,), [NAME])
    _, *found = steps
    assert found[2] / found[1] < 3 > found[1] / found[0], found
