"""Programs in the operators of ATen, as `make_fx` and exporters write them: what is fused, and what only looks so."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.fusion import fuse
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.sdpa import Sdpa
from course_lib.graph import count_operators
from course_lib.verify import verify
from tests.course_lib.fusion.passes.rewrites import normal

aten = torch.ops.aten
SDPA = Sdpa(every_row_sees_something=True)
Case = tuple[Callable[..., Any], tuple[Tensor, ...], str | GraphPass]
ROWS, WEIGHT, BIAS = normal(4, 16, 8), normal(8, 8), normal(8)
QKV = tuple(normal(4, 2, 16, 8) + number for number in range(3))
EQUAL = tuple(normal(4, 2, 8, 8) + number for number in range(3))
FLAT = tuple(normal(8, 16, 8) + number for number in range(3))
LOWER = torch.ones(16, 16).tril().bool()


def linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    rows = aten.view.default(x, [64, 8])
    turned = aten.t.default(w)
    product = aten.mm.default(rows, turned) if b is None else aten.addmm.default(b, rows, turned)
    return aten._unsafe_view.default(product, [4, 16, 8])


def permuted(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    rows, turned = aten.view.default(x, [64, 8]), aten.permute.default(w, [1, 0])
    return aten.view.default(aten.addmm.default(b, rows, turned), [4, 16, 8])


def matmul(a: Tensor, b: Tensor, shape: list[int], *, copied: bool = False) -> Tensor:
    batch, m, k, n = shape[0] * shape[1], shape[2], a.shape[-1], shape[3]
    first = aten.view.default(aten.expand.default(a, [*shape[:2], m, k]), [batch, m, k])
    second = aten.expand.default(b, [*shape[:2], k, n])
    if copied:
        second = aten.clone.default(second, memory_format=torch.contiguous_format)
    return aten._unsafe_view.default(aten.bmm.default(first, aten.reshape.default(second, [batch, k, n])), shape)


def attention(q: Tensor, k: Tensor, v: Tensor, change: Callable[[Tensor], Tensor] = lambda scores: scores / 3.0) -> Any:
    scores = change(matmul(q, aten.transpose.int(k, -2, -1), [4, 2, 16, 16], copied=True))
    return matmul(aten._softmax.default(scores, -1, False), v, [4, 2, 16, 8])


def _masked(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return attention(q, k, v, lambda scores: aten.masked_fill.Scalar(aten.div.Tensor(scores, 3.0), m, float("-inf")))


def _chosen(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    hidden = aten.scalar_tensor.default(float("-inf"), dtype=torch.float32)
    return attention(q, k, v, lambda scores: aten.where.self(m, aten.mul.Tensor(scores, 0.25), hidden))


def _of_bmm(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = aten.mul.Tensor(aten.bmm.default(q, aten.permute.default(k, [0, 2, 1])), 0.125)
    return aten.bmm.default(aten._softmax.default(scores, 2, False), v)


def by_einsum(scores: str, result: str) -> Callable[..., Tensor]:
    """Return attention by two equations, in the operators of ATen of which `torch.einsum` is made."""

    def written(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.einsum(result, (torch.einsum(scores, q, k) / 3.0).softmax(-1), v)

    return make_fx(written)(*EQUAL)


def normed(x: Tensor, w: Tensor | None, b: Tensor | None, taken: int = 0, shape: tuple[int, ...] = (8,)) -> Tensor:
    found: tuple[Tensor, ...] = aten.native_layer_norm.default(x, list(shape), w, b, 1e-5)
    return found[taken]


def _projections(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(linear(x, q)) * linear(x, k) + torch.sin(linear(x, v))


def _written_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = aten.mean.dim(x, [-1], True)
    centred = aten.sub.Tensor(x, mean)
    variance = aten.mean.dim(aten.pow.Tensor_Scalar(centred, 2), [-1], True)
    scaled = aten.mul.Tensor(centred, aten.rsqrt.default(aten.add.Scalar(variance, 1e-5)))
    return aten.add.Tensor(aten.mul.Tensor(scaled, w), b)


def _of_rows(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor, training: bool = False) -> Any:
    rows = aten.addmm.default(b, x, aten.t.default(w))
    return aten.native_batch_norm.default(rows, b, b, mean, variance, training, 0.1, 1e-5)[0]


def _of_a_signal(x: Tensor, w: Tensor, b: Tensor, m: Tensor, v: Tensor, turned: bool = False) -> Any:
    signal = aten.convolution.default(x, w, b, [1], [1], [1], turned, [0], 1)
    return aten._native_batch_norm_legit_no_training.default(signal, b, b, m, v, 0.1, 1e-5)[0]


STATISTICS = (normal(8), normal(8).abs() + 1)
# Each program with its inputs and the pass that has to fuse it.
FUSED: dict[str, Case] = {
    "attention": (lambda q, k, v: attention(q, k, v), QKV, SDPA),
    "attention with a mask": (_masked, (*QKV, ~LOWER), SDPA),
    "attention that chooses": (_chosen, (*QKV, LOWER), SDPA),
    "attention by bmm": (_of_bmm, FLAT, SDPA),
    "attention by einsum": (by_einsum("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"), EQUAL, SDPA),
    "attention by einsum, heads behind rows": (by_einsum("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"), EQUAL, SDPA),
    "attention by einsum, keys turned": (by_einsum("bhqd,bhdk->bhqk", "bhqk,bhkd->bqhd"), EQUAL, SDPA),
    "attention by einsum, keys as queries": (by_einsum("bhqd,bhkd->bhkq", "bhqk,bhkd->bhqd"), EQUAL, SDPA),
    "projections": (_projections, (ROWS, WEIGHT, WEIGHT + 1, WEIGHT + 2), "qkv_merge"),
    "bias after a product": (lambda x, w, b: aten.gelu.default(aten.add.Tensor(linear(x, w), b)),
                             (ROWS, WEIGHT, BIAS), "bias_gelu"),
    "residual and LayerNorm": (lambda x, r, w, b: normed(aten.add.Tensor(x, r), w, b),
                               (ROWS, ROWS * 2, BIAS, BIAS), "residual_layer_norm"),
    "projection, residual and LayerNorm": (
        lambda x, w, b: normed(aten.add.Tensor(permuted(x, w, b), x), b, b), (ROWS, WEIGHT, BIAS), "residual_layer_norm"
    ),
    "a written LayerNorm": (_written_norm, (ROWS, BIAS, BIAS), "formulas"),
    "a linear layer and BatchNorm": (lambda x, w, b, m, v: _of_rows(x, w, b, m, v),
                                     (normal(200, 8), WEIGHT, BIAS, *STATISTICS), "linear_batch_norm"),
    "a convolution and BatchNorm": (lambda x, w, b, m, v: _of_a_signal(x, w, b, m, v),
                                    (normal(2, 8, 60), normal(8, 8, 3), BIAS, *STATISTICS),
                                    "conv_batch_norm"),
    "a scaled product": (lambda a, b: aten.div.Tensor(aten.mm.default(a, b), 8.0),
                         (normal(64, 8), normal(8, 64)), "matmul_scale"),
    "a scaled product of many": (lambda a, b: matmul(a, b, [4, 2, 16, 16]) * 0.125,
                                 (normal(4, 2, 16, 2), normal(4, 2, 2, 16)), "matmul_scale"),
}  # fmt: skip


def _name(given: str | GraphPass) -> str:
    return given if isinstance(given, str) else given.name


@pytest.mark.parametrize("name", FUSED)
def test_a_program_in_aten_is_fused_and_gives_the_same_values_and_gradients(name: str) -> None:
    program, inputs, wanted = FUSED[name]
    result = fuse(program, inputs, (wanted,), check=False)
    assert result.num_matches_by_pass == {_name(wanted): 1}, result.explain()
    is_norm = "BatchNorm" in name  # its statistics take no gradients
    report = verify(
        program, result.graph_module, inputs, modes=("eval",), gradients=not is_norm, second_gradients=False
    )
    assert report.passed, str(report)
    assert fuse(result.graph_module, inputs, (wanted,), check=False).num_matches == 0
    if is_norm:
        found, expected = (_gradients(one, inputs) for one in (result.graph_module, program))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def _gradients(run: Callable[..., Any], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the gradients of the input, weight and bias of a layer before a BatchNorm."""
    leaves = [one.clone().requires_grad_() for one in inputs[:3]]
    return torch.autograd.grad(run(*leaves, *inputs[3:]).sin().sum(), leaves)


def _written_between(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    rows = aten.view.default(x, [64, 8])
    product = aten.addmm.default(b, rows, aten.t.default(w))
    x.mul_(2)
    return normed(aten.add.Tensor(aten.view.default(product, [4, 16, 8]), ROWS_ALONE), b, b) + x


def _copied_then_written(q: Tensor, k: Tensor, v: Tensor) -> Any:
    copied = aten.clone.default(aten.expand.default(q, [4, 2, 16, 8]))
    q.mul_(2)
    scores = aten.bmm.default(aten.view.default(copied, [8, 16, 8]), k.reshape(8, 16, 8).mT)
    return matmul(torch.softmax(aten.view.default(scores, [4, 2, 16, 16]) / 3.0, -1), v, [4, 2, 16, 8]) + q


def _also_returned(x: Tensor, q: Tensor, k: Tensor) -> Any:
    first = aten.mm.default(aten.view.default(x, [64, 8]), aten.t.default(q))
    return torch.tanh(aten.view.default(first, [4, 16, 8])) * linear(x, k), first


def _weighted_sum(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Any:
    rows = aten.addmm.default(b, x, aten.t.default(w), beta=2)
    return aten.native_batch_norm.default(rows, b, b, mean, variance, False, 0.1, 1e-5)[0]


def _not_turned(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Any:
    return aten.native_batch_norm.default(aten.addmm.default(b, x, w), b, b, mean, variance, False, 0.1, 1e-5)[0]


def _with_a_matrix_as_bias(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Any:
    rows = aten.addmm.default(x, x, aten.t.default(w))
    return aten.native_batch_norm.default(rows, b, b, mean, variance, False, 0.1, 1e-5)[0]


def _reads_the_mean(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Tensor:
    found = aten.native_layer_norm.default(aten.add.Tensor(x, r), [8], w, b, 1e-5)
    result: Tensor = found[0] + found[1]
    return result


def _other_heads(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """Multiply the queries of each head with the keys of another: the same shapes, another order."""
    turned = aten.clone.default(aten.transpose.int(k, 0, 1), memory_format=torch.contiguous_format)
    scores = aten.bmm.default(q.reshape(8, 16, 8), aten.view.default(turned, [8, 16, 8]).mT)
    return matmul(torch.softmax(aten.view.default(scores, [4, 2, 16, 16]) / 3.0, -1), v, [4, 2, 16, 8])


ROWS_ALONE = normal(4, 16, 8)
ROWS_OF_TEN = (normal(200, 8), WEIGHT, BIAS, *STATISTICS)
LOOKALIKES: dict[str, Case] = {
    "beta": (_weighted_sum, ROWS_OF_TEN, "linear_batch_norm"),
    "a weight that is not transposed": (_not_turned, ROWS_OF_TEN, "linear_batch_norm"),
    "a matrix as bias": (_with_a_matrix_as_bias, (normal(8, 8), *ROWS_OF_TEN[1:]), "linear_batch_norm"),
    "BatchNorm that trains": (lambda x, w, b, m, v: _of_rows(x, w, b, m, v, True), ROWS_OF_TEN, "linear_batch_norm"),
    "a transposed convolution": (lambda x, w, b, m, v: _of_a_signal(x, w, b, m, v, True),
                                 (normal(2, 8, 60), normal(8, 8, 3), BIAS, *STATISTICS), "conv_batch_norm"),
    "a copy of what is written then": (_copied_then_written, QKV, SDPA),
    "softmax over queries": (lambda q, k, v: matmul(aten._softmax.default(
        matmul(q, aten.transpose.int(k, -2, -1), [4, 2, 16, 16]) / 3.0, -2, False), v, [4, 2, 16, 8]), QKV, SDPA),
    "a key that is not transposed": (lambda q, k, v: matmul(torch.softmax(matmul(q, k, [4, 2, 8, 8]) / 3.0, -1), v,
                                                           [4, 2, 8, 8]), tuple(normal(4, 2, 8, 8) for _ in QKV), SDPA),
    "a mask without a promise": (_masked, (*QKV, ~LOWER), "sdpa"),
    "a scale that is computed": (lambda q, k, v: attention(q, k, v, lambda scores: scores * q.sum()), QKV, SDPA),
    "keys of other heads": (_other_heads, QKV, SDPA),
    "values summed over queries, by einsum": (by_einsum("bhqd,bhkd->bhqk", "bhqk,bhqd->bhkd"), EQUAL, SDPA),
    "a product that is also returned": (_also_returned, (ROWS, WEIGHT, WEIGHT + 1), "qkv_merge"),
    "LayerNorm whose mean is read": (_reads_the_mean, (ROWS, ROWS * 2, BIAS, BIAS), "residual_layer_norm"),
    "LayerNorm over two dimensions": (
        lambda x, r, w: normed(aten.add.Tensor(x, r), w, w, shape=(16, 8)), (ROWS, ROWS * 2, normal(16, 8)),
        "residual_layer_norm"),
    "the mean of LayerNorm": (lambda x, r, w: normed(aten.add.Tensor(x, r), w, w, taken=1),
                              (ROWS, ROWS * 2, BIAS), "residual_layer_norm"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKALIKES)
def test_a_look_alike_in_aten_stays_as_it_is_spelt(name: str) -> None:
    program, inputs, wanted = LOOKALIKES[name]
    before = fuse(program, inputs, (), check=False)
    result = fuse(program, inputs, (wanted,), check=False)
    assert result.num_matches == 0, result.explain()
    assert count_operators(result.graph_module) == count_operators(before.graph_module)
    copies = [[one.clone() for one in inputs] for _ in range(2)]
    torch.testing.assert_close(result.graph_module(*copies[0]), program(*copies[1]))


def test_a_write_between_the_parts_is_kept_apart_from_what_was_read() -> None:
    inputs = (ROWS, WEIGHT, BIAS)
    result = fuse(_written_between, [one.clone() for one in inputs], check=False)
    copies = [[one.clone() for one in inputs] for _ in range(2)]
    torch.testing.assert_close(result.graph_module(*copies[0]), _written_between(*copies[1]))
