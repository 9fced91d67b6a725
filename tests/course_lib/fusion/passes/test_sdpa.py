"""Written-out attention becomes PyTorch's operator when asked for, and only where it is proven to be the same."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import Sdpa, fuse
from course_lib.graph import count_operators
from course_lib.models import TransformerConfig
from course_lib.models.transformer import SelfAttention
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

Tensor = torch.Tensor
QKV = tuple(normal(2, 3, size, 4) * scale for size, scale in ((5, 1), (7, 2), (7, 3)))
CONFIG = TransformerConfig(hidden_size=12, num_heads=3, intermediate_size=12, num_layers=1, dropout=0.3)


def _attend(scores: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) @ v


SPELLINGS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "divided": lambda q, k, v: _attend(q @ k.transpose(-1, -2) / 2.0, v),
    "multiplied": lambda q, k, v: _attend(0.3 * torch.matmul(q, torch.transpose(k, 2, 3)), v),
    "the query divided first": lambda q, k, v: _attend((q / math.sqrt(4)) @ k.mT, v),
    "the query multiplied first": lambda q, k, v: _attend((q * 4**-0.5) @ k.permute(0, 1, 3, 2), v),
    "functional": lambda q, k, v: F.softmax(q.matmul(k.transpose(-2, -1)) / math.sqrt(4), 3).matmul(v),
    "not scaled": lambda q, k, v: _attend(q @ k.transpose(-1, -2), v),
    "einsum": lambda q, k, v: torch.einsum(
        "bhqk,bhkd->bhqd", torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5, -1), v
    ),
    "einsum with an ellipsis": lambda q, k, v: torch.einsum(
        "... i j, ... j e -> ... i e", torch.softmax(torch.einsum("... i d, ... j d -> ... i j", q, k) / 3, -1), v
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_fused_and_computes_the_same(spelling: str) -> None:
    result = fused(SPELLINGS[spelling], QKV, "sdpa")
    assert count_operators(result.graph_module) == {"Attention": 1}
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved  # type: ignore[union-attr]
    same(SPELLINGS[spelling], result, QKV)


def test_a_layer_with_dropout_is_fused_and_computes_the_same_in_both_modes() -> None:
    layer, inputs = SelfAttention(CONFIG), (normal(2, 5, 12),)

    def program(hidden: Tensor) -> Tensor:
        return layer(hidden)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, hidden: Tensor) -> Tensor:
            return self.layer(hidden, None)

    same(Layer(), fused(Layer(), inputs, "sdpa"), inputs)


def _masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend(q @ k.transpose(-1, -2) / 2.0 + mask, v)


def test_a_mask_needs_a_promise_because_a_row_may_be_masked_whole() -> None:
    mask = torch.zeros(2, 1, 5, 7)
    mask[:, :, :, 4:] = -math.inf
    left_alone(_masked, (*QKV, mask), "sdpa", "mask promise")
    result = fuse(_masked, (*QKV, mask), (Sdpa(every_row_sees_something=True),))
    assert result.num_matches == 1
    same(_masked, result, (*QKV, mask), gradients=False)


LOOKALIKES: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], object], str]] = {
    "other dimension": (lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 2, dim=-2) @ v, "argument"),
    "another type": (lambda q, k, v: F.softmax(q @ k.transpose(2, 3) / 2, 3, dtype=torch.float) @ v, "dtype"),
    "negative scale": (lambda q, k, v: _attend(q @ k.transpose(-1, -2) / -2.0, v), "scale"),
    "scaled by a tensor": (lambda q, k, v: _attend(q @ k.transpose(-1, -2) / q.sum(), v), "scale"),
    "dropout for good": (
        lambda q, k, v: F.dropout(torch.softmax(q @ k.transpose(-1, -2) / 2, -1), 0.5, True) @ v,
        "training",
    ),
    "another sum": (
        lambda q, k, v: torch.einsum("bhqk,bhqd->bhkd", torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k), -1), q),
        "argument",
    ),
    "broadcast heads": (lambda q, k, v: _attend(q @ k[:, :1].transpose(-1, -2) / 2.0, v), "shape"),
}


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    program, rule = LOOKALIKES[case]
    left_alone(program, QKV, "sdpa", rule)


def test_probabilities_that_are_returned_must_be_computed() -> None:
    def program(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        probabilities = torch.softmax(q @ k.transpose(-1, -2) / 2.0, dim=-1)
        return probabilities @ v, probabilities

    left_alone(program, QKV, "sdpa", "is an output")


def test_it_does_not_run_unless_it_is_named() -> None:
    assert "sdpa" not in fuse(SPELLINGS["divided"], QKV).num_matches_by_pass


COMPUTED_SCALES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "root of a size": lambda q, k, v: _attend(q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)), v),
    "power of a size": lambda q, k, v: _attend(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, v),
    "query first": lambda q, k, v: _attend((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), v),
    "reciprocal": lambda q, k, v: _attend((1 / math.sqrt(k.size(3))) * (q @ k.mT), v),
    "a constant tensor": lambda q, k, v: _attend(q @ k.mT / torch.sqrt(torch.tensor(4.0)), v),
}


@pytest.mark.parametrize("spelling", COMPUTED_SCALES)
def test_a_scale_may_be_computed_from_sizes(spelling: str) -> None:
    program = COMPUTED_SCALES[spelling]
    result = fuse(program, QKV, ("sdpa", "dead_code"))
    assert count_operators(result.graph_module)["Attention"] == 1
    assert result.cost_after.launches < result.cost_before.launches  # type: ignore[union-attr]
    same(program, result, QKV)


def test_a_scale_from_a_dynamic_size_is_not_a_number() -> None:
    class Program(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return _attend(q @ k.transpose(-1, -2) / k.shape[2], v)

    dynamic = {"q": None, "k": {2: torch.export.Dim("rows")}, "v": {2: torch.export.Dim("rows")}}
    exported = torch.export.export(Program(), QKV, dynamic_shapes=dynamic)
    fused_program = fuse(exported, QKV, ("sdpa",)).graph_module
    longer = (QKV[0], torch.cat([QKV[1]] * 2, 2), torch.cat([QKV[2]] * 2, 2))
    torch.testing.assert_close(fused_program(*longer), Program()(*longer))


THREE = tuple(one[0] for one in QKV)
OF_THREE: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "matmul": lambda q, k, v: _attend(q @ k.transpose(1, 2) / 2.0, v),
    "bmm": lambda q, k, v: torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 2.0, -1), v),
    "einsum": lambda q, k, v: torch.einsum("bij,bjd->bid", torch.einsum("bid,bjd->bij", q, k).softmax(-1), v),
}


@pytest.mark.parametrize("spelling", OF_THREE)
def test_three_dimensions_are_fused(spelling: str) -> None:
    result = fused(OF_THREE[spelling], THREE, "sdpa")
    assert count_operators(result.graph_module) == {"Attention": 1}
    same(OF_THREE[spelling], result, THREE)


def test_heads_behind_rows_are_permuted() -> None:
    def program(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v)

    inputs = tuple(one.transpose(1, 2).contiguous() for one in QKV)
    result = fuse(program, inputs, (Sdpa(), "dead_code"))
    assert result.num_matches_by_pass["sdpa"] == 1, str(result)
    same(program, result, inputs)


PROMISED = Sdpa(every_row_sees_something=True)
HIDDEN = torch.zeros(5, 7, dtype=torch.bool)
HIDDEN[:, 4:] = True
Masked = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
FILLS: dict[str, tuple[Masked, Tensor]] = {
    "-inf": (lambda q, k, v, m: _attend((q @ k.mT / 2.0).masked_fill(m, -math.inf), v), HIDDEN),
    "-1e9": (lambda q, k, v, m: _attend((q @ k.mT / 2.0).masked_fill(m == 0, -1e9), v), (~HIDDEN).float()),
    "where": (lambda q, k, v, m: _attend(torch.where(m, q @ k.mT, -math.inf), v), ~HIDDEN),
    "where, the other way": (lambda q, k, v, m: _attend(torch.where(m, -math.inf, q @ k.mT), v), HIDDEN),
    "one row": (lambda q, k, v, m: _attend((q @ k.mT / 2.0).masked_fill(m, -math.inf), v), HIDDEN[0]),
    "heads": (lambda q, k, v, m: _attend((q @ k.mT).masked_fill(m, -math.inf), v), HIDDEN.expand(2, 1, 5, 7)),
}


@pytest.mark.parametrize("case", FILLS)
def test_masks_that_fill_scores_need_the_promise_too(case: str) -> None:
    program, mask = FILLS[case]
    assert fuse(program, (*QKV, mask), ("sdpa",)).rejected[0].rule == "mask promise"
    result = fuse(program, (*QKV, mask), (PROMISED,))
    assert result.num_matches_by_pass == {"sdpa": 1}, str(result)
    same(program, result, (*QKV, mask))


def test_a_number_that_does_not_hide_a_score_is_refused() -> None:
    def program(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return _attend((q @ k.mT).masked_fill(mask, -5.0), v)

    result = fuse(program, (*QKV, HIDDEN), (PROMISED,))
    assert [one.rule for one in result.rejected] == ["fill"]


@pytest.mark.parametrize("shape", [(), (7,), (1,), (5, 1), (3, 5, 7), (1, 1, 1, 7)])
@pytest.mark.parametrize("inputs", [QKV, THREE], ids=["four", "three"])
def test_added_masks_may_have_any_shape_that_broadcasts(shape: tuple[int, ...], inputs: tuple[Tensor, ...]) -> None:
    if len(shape) > inputs[0].ndim:
        shape = shape[1:]
    mask = normal(*shape)
    result = fuse(_masked, (*inputs, mask), (PROMISED,))
    assert result.num_matches == 1, str(result)
    same(_masked, result, (*inputs, mask))


DERIVATIVES: dict[str, Callable[[Callable[..., Tensor]], object]] = {
    "twice": lambda f: torch.autograd.gradgradcheck(f, tuple(one.double().requires_grad_() for one in QKV)),
    "forward": lambda f: torch.func.jvp(f, QKV, tuple(one.cos() for one in QKV)),
    "grad": lambda f: torch.func.grad(lambda *given: f(*given).square().sum(), (0, 1, 2))(*QKV),
    "vmap": lambda f: torch.vmap(f)(*(torch.stack([one, one.sin()]) for one in QKV)),
    "some": lambda f: torch.autograd.grad(f(QKV[0], QKV[1].requires_grad_(), QKV[2]).sum(), QKV[1]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_attention_has_every_derivative(name: str) -> None:
    program = SPELLINGS["divided"]
    graph = fuse(program, QKV, ("sdpa",)).graph_module
    torch.testing.assert_close(DERIVATIVES[name](graph), DERIVATIVES[name](program))
