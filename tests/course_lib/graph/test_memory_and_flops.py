"""Arithmetic, unavoidable traffic, live memory and saved memory are those counted by hand."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from course_lib.graph import Cost, cost, saved_for_backward
from course_lib.kernels import bias_gelu, bias_silu

M, N = 6, 8
X = M * N * 4  # bytes of x, float32
B = N * 4  # bytes of the bias
W = N * N * 4  # bytes of the weight

Program = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


def _inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(M, N), torch.randn(N), torch.randn(N, N)


def _adds_twice(x: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.add_(b).add_(b)


def _fills_and_reads(x: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x.zero_()
    return x + b


def _dead(x: torch.Tensor, b: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.exp()[0]


MINIMUM: dict[str, tuple[Program, int]] = {
    "two_operators": (lambda x, b, w: F.silu(x + b), X + B + X),
    "an_input_read_twice": (lambda x, b, w: (x + b) * x, X + B + X),
    "a_part_and_the_whole": (lambda x, b, w: x[1:].sum() + x.sum(), X + 4),
    "an_input_transposed_and_not": (lambda x, b, w: w + w.t(), W + W),
    "two_results_of_which_one_is_a_view": (lambda x, b, w: (x, x.exp(), x.t()), X + X),
    "the_same_result_twice": (lambda x, b, w: [x.exp()] * 2, X + X),
    "in_place_twice": (_adds_twice, X + B + X),
    "overwritten_before_it_is_read": (_fills_and_reads, X + B + X),
    "one_row_of_what_was_computed": (_dead, X + N * 4),
    "a_gather": (lambda x, b, w: F.embedding(torch.tensor([0, 2]), x), 2 * 8 + 2 * B + 2 * B),
    "the_same_rows_often": (lambda x, b, w: F.embedding(torch.zeros(100, dtype=torch.long), x).sum(), X + 4),
    "views_alone": (lambda x, b, w: x.t(), 0),
}


@pytest.mark.parametrize("case", MINIMUM)
def test_the_unavoidable_traffic_is_that_counted_by_hand(case: str) -> None:
    program, expected = MINIMUM[case]
    assert cost(program, _inputs()).minimum_bytes == expected


def test_what_eager_moves_is_never_less_than_what_is_unavoidable() -> None:
    for program, _ in MINIMUM.values():
        counted = cost(program, _inputs())
        if "embedding" not in counted.operators:
            assert counted.bytes_moved >= counted.minimum_bytes


def test_gradients_that_are_left_behind_are_written() -> None:
    x, bias, _ = (tensor.requires_grad_() for tensor in _inputs())
    seed = torch.ones(M, N)
    counted = cost(lambda: bias_silu(x, bias).backward(seed), ())
    assert counted.minimum_bytes == (X + B + X) + (X + B)  # x, bias and the seed read; two gradients written


def test_a_fused_operator_of_the_course_is_as_cheap_as_can_be() -> None:
    x, bias, _ = _inputs()
    assert cost(bias_gelu, (x, bias)).bytes_moved == cost(lambda x, b: F.gelu(x + b), (x, bias)).minimum_bytes


FLOPS: dict[str, tuple[Program, int]] = {
    "a_linear_layer": (lambda x, b, w: F.linear(x, w, b), 2 * M * N * N),
    "a_batch_of_products": (lambda x, b, w: x.expand(3, M, N) @ w.expand(3, N, N), 3 * 2 * M * N * N),
    "elementwise": (lambda x, b, w: F.silu(x + b).sum(), 0),
    "a_product_added_in_place": (lambda x, b, w: w.addmm_(w, w), 2 * N * N * N),
    "products_added_in_place": (lambda x, b, w: w[None].baddbmm_(w[None], w[None]), 2 * N * N * N),
    "a_convolution": (lambda x, b, w: F.conv1d(x[None], torch.ones(5, M, 3)), 2 * 5 * (N - 2) * M * 3),
    "attention": (lambda x, b, w: F.scaled_dot_product_attention(*[x[None, None]] * 3), 2 * (2 * M * M * N)),
}


@pytest.mark.parametrize("case", FLOPS)
def test_arithmetic_is_that_counted_by_hand(case: str) -> None:
    program, expected = FLOPS[case]
    assert cost(program, _inputs()).flops == expected


def test_arithmetic_of_backward_counts_both_products() -> None:
    x, _, w = (tensor.requires_grad_() for tensor in _inputs())
    assert cost(lambda: (x @ w).sum().backward(), ()).flops == 3 * 2 * M * N * N


def test_arithmetic_of_a_layer_is_that_of_pytorchs_own_counter() -> None:
    layer = nn.Sequential(nn.Linear(N, 4 * N), nn.GELU(), nn.Linear(4 * N, N))
    x = _inputs()[0]
    with FlopCounterMode(display=False) as counter:
        layer(x)
    assert cost(layer, (x,)).flops == counter.get_total_flops() > 0


PEAK: dict[str, tuple[Program, int]] = {
    "nothing": (lambda x, b, w: None, 0),
    "views_alone": (lambda x, b, w: x.t()[1:], 0),
    "one_result": (lambda x, b, w: x + b, X),
    "a_chain_keeps_two": (lambda x, b, w: x.exp().exp().exp().exp(), 2 * X),
    "a_chain_in_place_keeps_one": (lambda x, b, w: x.exp().exp_().exp_(), X),
    "views_share": (lambda x, b, w: x.exp().t().contiguous().view(-1).exp(), 2 * X),
    "all_at_once": (lambda x, b, w: [x.exp(), x.sin(), x.cos()], 3 * X),
    "a_view_keeps_the_whole": (lambda x, b, w: [x.exp()[0], x.sin()[0]], 2 * X),
    "inputs_in_place": (_adds_twice, 0),
}


@pytest.mark.parametrize("case", PEAK)
@pytest.mark.parametrize("fake", [False, True])
def test_peak_memory_is_that_counted_by_hand(case: str, fake: bool) -> None:
    program, expected = PEAK[case]
    if fake:
        with FakeTensorMode():
            assert cost(program, _inputs()).peak_bytes == expected
    else:
        assert cost(program, _inputs()).peak_bytes == expected


def test_what_autograd_keeps_counts_as_live() -> None:
    x = _inputs()[0].requires_grad_()
    chain = lambda x: x.exp().exp().exp().exp()  # noqa: E731  # a program, not a helper
    assert cost(chain, (x,)).peak_bytes == 4 * X


SAVED: dict[str, tuple[Program, int]] = {
    "only_inputs_and_parameters": (lambda x, b, w: F.linear(x, w, b), 0),
    "the_sum_before_gelu": (lambda x, b, w: F.gelu(x + b), X),
    "fused_bias_gelu_keeps_its_inputs": (lambda x, b, w: bias_gelu(x, b), 0),
    "fused_after_a_product": (lambda x, b, w: bias_gelu(x @ w, b), X),
    "unfused_after_a_product": (lambda x, b, w: F.gelu(x @ w + b), X),
    "a_result_that_is_kept": (lambda x, b, w: x.exp(), X),
    "a_view_of_what_is_kept_already": (lambda x, b, w: (e := x.exp()) @ e.t(), X),
    "a_mask": (lambda x, b, w: F.dropout(x, 0.5), X),
    "a_sum": (lambda x, b, w: x.sum(), 0),
}


@pytest.mark.parametrize("case", SAVED)
@pytest.mark.parametrize("fake", [False, True])
def test_saved_memory_is_that_counted_by_hand(case: str, fake: bool) -> None:
    program, expected = SAVED[case]
    if fake:
        with FakeTensorMode():
            assert saved_for_backward(program, [t.requires_grad_() for t in _inputs()]).total_bytes == expected
    else:
        assert saved_for_backward(program, [t.requires_grad_() for t in _inputs()]).total_bytes == expected


def test_nothing_is_saved_if_nothing_requires_gradients() -> None:
    assert saved_for_backward(lambda x, b, w: F.gelu(x + b), _inputs()).total_bytes == 0


def test_saved_tensors_are_named_by_dtype_and_shape() -> None:
    saved = saved_for_backward(lambda x, b, w: F.gelu(x.exp() + b), [t.requires_grad_() for t in _inputs()])
    assert saved.tensors == (f"float32[{M}, {N}]",) * 2


def test_a_layer_costs_the_same_on_fake_and_on_real_tensors() -> None:
    def program() -> Cost:
        layer = nn.Sequential(nn.Linear(N, 4 * N), nn.GELU(), nn.Linear(4 * N, N), nn.LayerNorm(N))
        return cost(layer, (torch.ones(M, N),))

    real = program()
    with FakeTensorMode():
        fake = program()
    assert real == fake
    for name in ("flops", "minimum_bytes", "peak_bytes"):
        assert getattr(real, name) == getattr(fake, name)
