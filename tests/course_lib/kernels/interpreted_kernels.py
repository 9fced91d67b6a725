"""The Triton kernels in Triton's interpreter, which needs no GPU: run by `test_triton.py` alone.

What the operators give here comes from the kernels, and must agree with PyTorch's own operators in double precision. An
interpreter computes one program after the other, so this says nothing about races, nor about speed.
"""

import itertools
import mmap
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from course_lib.kernels import bias_gelu, bias_silu, dispatch
from course_lib.kernels.dropout import dropout_factors, uniform_numbers
from course_lib.kernels.triton import bias_activation, residual_norm
from tests.course_lib.kernels.row_operators import EPS, LAYOUTS, ROW_OPERATORS, RowOperator, Tensors
from tests.drawn import third

SEED = torch.tensor([7 + 2**40])
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
SIZES = [(1, 1), (3, 4), (5, 3), (7, 127), (9, 129), (3, 768), (1030, 2)]
# Whose columns are summed by 512 programs, one after the other: with a third of the kernels in each run.
WIDEST = (2, 8192)
# A row of one element is always normalised to nothing, and its gradients are rounding.
LONG_ROWS = [size for size in SIZES if size[1] > 1]
SILU_AND_GELU: dict[str, tuple[Callable[..., torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]] = {
    "gelu": (bias_gelu, F.gelu),
    "gelu_tanh": (lambda x, b: bias_gelu(x, b, "tanh"), lambda z: F.gelu(z, approximate="tanh")),
    "silu": (bias_silu, F.silu),
}
EACH = pytest.mark.parametrize("operator", ROW_OPERATORS, ids=lambda operator: operator.name)
WITH_AND_WITHOUT_DROPOUT = [
    pytest.param(operator, p, id=f"{operator.name}-{p}")
    for operator in ROW_OPERATORS
    for p in ((0.0, 0.4) if operator.drops else (0.0,))
]
BIAS_CASES = [
    *itertools.product(SILU_AND_GELU, SIZES),
    *third([(name, WIDEST) for name in SILU_AND_GELU], name="widest rows of bias kernels"),
]
ROW_CASES = [
    pytest.param(*case.values, size, id=f"{case.id}-{size}")
    for cases, sizes in (
        (WITH_AND_WITHOUT_DROPOUT, LONG_ROWS),
        (third(WITH_AND_WITHOUT_DROPOUT, name="widest rows of row kernels"), [WIDEST]),
    )
    for case, size in itertools.product(cases, sizes)
]
CANARY = 12345.0
MAP_NORESERVE = 0x4000  # of Linux, and named in Python 3.13


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of the kernels' entry points that ran, and fail if none did."""
    names: list[str] = []
    for module, name in (
        (bias_activation, "activate"),
        (bias_activation, "activation_gradients"),
        (residual_norm, "normalise"),
        (residual_norm, "norm_gradients"),
    ):
        original = getattr(module, name)

        def record(*args: object, original: Callable[..., object] = original, name: str = name) -> object:
            names.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, record)
    return names


def _exact(tensors: Tensors) -> Tensors:
    return tuple(tensor.detach().double().requires_grad_() for tensor in tensors)


def _compare(output: torch.Tensor, expected: torch.Tensor, tensors: Tensors, exact: Tensors) -> None:
    grad = torch.linspace(-1, 1, output.numel()).view(output.shape)
    tolerance = TOLERANCE[output.dtype]
    torch.testing.assert_close(output.double(), expected, rtol=tolerance, atol=tolerance)
    ours = torch.autograd.grad(output, tensors, grad.to(output.dtype))
    theirs = torch.autograd.grad(expected, exact, grad.to(output.dtype).double())
    for mine, right in zip(ours, theirs, strict=True):
        # Sums over rows grow as their number does; so does their rounding, more slowly.
        scale = float(right.abs().amax().clamp(min=1)) if right.numel() else 1.0
        torch.testing.assert_close(mine.double(), right, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(("name", "size"), BIAS_CASES, ids=str)
def test_bias_kernels_agree_with_double_precision(name: str, size: tuple[int, int], used: list[str]) -> None:
    fused, activation = SILU_AND_GELU[name]
    tensors = (2 * torch.randn(size)).requires_grad_(), torch.randn(size[1], requires_grad=True)
    exact = _exact(tensors)
    _compare(fused(*tensors), activation(exact[0] + exact[1]), tensors, exact)
    assert used == ["activate", "activation_gradients"]


@pytest.mark.parametrize(("operator", "p", "size"), ROW_CASES)
def test_row_kernels_agree_with_double_precision(
    operator: RowOperator, p: float, size: tuple[int, int], used: list[str]
) -> None:
    tensors = operator.tensors(lambda: torch.randn(size))
    seed = SEED if p > 0 else None
    exact = _exact(tensors)
    factors = None if seed is None else dropout_factors(seed, p, exact[0])
    _compare(operator.seeded(tensors, seed, p), operator.eager(exact, factors), tensors, exact)
    assert used == ["normalise", "norm_gradients"]


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_row_kernels_compute_half_precision_in_float32(operator: RowOperator, dtype: torch.dtype) -> None:
    tensors = operator.tensors(lambda: torch.randn(5, 127), dtype)
    exact = _exact(tensors)
    factors = dropout_factors(SEED, 0.4, exact[0]) if operator.drops else None
    _compare(operator.seeded(tensors, SEED, 0.4), operator.eager(exact, factors), tensors, exact)


@pytest.mark.parametrize("name", SILU_AND_GELU)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_bias_kernels_compute_half_precision_in_float32(name: str, dtype: torch.dtype) -> None:
    fused, activation = SILU_AND_GELU[name]
    tensors = torch.randn(5, 127).to(dtype).requires_grad_(), torch.randn(127).to(dtype).requires_grad_()
    exact = _exact(tensors)
    _compare(fused(*tensors), activation(exact[0] + exact[1]), tensors, exact)


@EACH
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "one_column"])
def test_row_kernels_take_any_strides(operator: RowOperator, layout: str) -> None:
    tensors = operator.tensors(LAYOUTS[layout])
    seed = SEED if operator.drops else None
    exact = _exact(tensors)
    factors = None if seed is None else dropout_factors(seed, 0.4, exact[0])
    output = operator.seeded(tensors, seed, 0.4)
    assert output.is_contiguous()
    _compare(output, operator.eager(exact, factors), tensors, exact)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bias_kernels_take_any_strides_and_give_those_of_eager(layout: str) -> None:
    x, bias = LAYOUTS[layout](), torch.randn(LAYOUTS[layout]().shape[-1])
    output = bias_gelu(x, bias)
    torch.testing.assert_close(output, F.gelu(x + bias))
    assert output.stride() == (x + bias).stride()


@EACH
def test_gradients_of_any_strides_are_taken(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(6, 5))
    exact = _exact(tensors)
    for grad in (torch.randn(5, 6).T, torch.randn(5).expand(6, 5), torch.randn(6, 10)[:, ::2]):
        ours = torch.autograd.grad(operator.seeded(tensors, None, 0.0), tensors, grad)
        theirs = torch.autograd.grad(operator.eager(exact, None), exact, grad.double())
        for mine, right in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.double(), right, rtol=1e-4, atol=1e-4)


@EACH
def test_with_probability_one_only_the_residual_is_left(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(3, 8))
    if operator.drops:
        expected = operator.eager(tensors, torch.zeros(3, 8))
        torch.testing.assert_close(operator.seeded(tensors, SEED, 1.0), expected, rtol=1e-5, atol=1e-5)


def test_double_precision_and_long_rows_are_left_to_pytorch(used: list[str]) -> None:
    for x in (torch.randn(2, 8, dtype=torch.float64), torch.randn(1, dispatch.MAX_COLUMNS + 1)):
        bias = torch.randn(x.shape[1], dtype=x.dtype)
        torch.testing.assert_close(bias_silu(x, bias), F.silu(x + bias))
    assert used == []


def _fenced(shape: tuple[int, ...], fill: float = CANARY) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a contiguous tensor, and the memory around it that a kernel must leave alone."""
    size = torch.Size(shape).numel()
    memory = torch.full((size + 2 * 4096,), fill)
    return memory[4096 : 4096 + size].view(shape), memory


def _fenced_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy among NaNs, so that what is read besides it spoils the result."""
    copy, _ = _fenced(tuple(tensor.shape), fill=float("nan"))
    return copy.copy_(tensor.detach())


def _assert_fence_stands(memory: torch.Tensor) -> None:
    assert (memory[:4096] == CANARY).all()
    assert (memory[-4096:] == CANARY).all()
    assert not (memory[4096:-4096] == CANARY).any()


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (7, 127), (513, 2)], ids=str)
def test_bias_kernels_touch_nothing_but_their_tensors(size: tuple[int, int]) -> None:
    x, bias = torch.randn(size), torch.randn(size[1])
    inputs = _fenced_copy(torch.randn(size)), _fenced_copy(x), _fenced_copy(bias)
    programs = bias_activation.backward_programs(x)
    output, around_output = _fenced(size)
    grad_x, around_grad = _fenced(size)
    partial, around_partial = _fenced((programs, size[1]))
    bias_activation.activate_into(output, inputs[1], inputs[2], "gelu")
    bias_activation.activation_gradients_into(grad_x, partial, *inputs, "gelu")
    for memory in (around_output, around_grad, around_partial):
        _assert_fence_stands(memory)
        assert not memory.isnan().any()


@EACH
@pytest.mark.parametrize("size", [(1, 2), (5, 3), (7, 127), (513, 2)], ids=str)
def test_row_kernels_touch_nothing_but_their_tensors(operator: RowOperator, size: tuple[int, int]) -> None:
    fenced = [_fenced_copy(tensor) for tensor in operator.tensors(lambda: torch.randn(size))]
    if operator.name == "residual_layer_norm":
        x, residual, weight, norm_bias = fenced
        call = residual_norm.ResidualNorm(x, None, residual, weight, norm_bias, SEED, 0.4, EPS)
    else:
        x, vector, residual, weight, *rest = fenced
        norm_bias_or_none = rest[0] if rest else None
        call = residual_norm.ResidualNorm(
            x, vector, residual, weight, norm_bias_or_none, SEED, 0.4, EPS, multiplies=not rest
        )
    programs = residual_norm.backward_programs(call)
    output, around_output = _fenced(size)
    grad_x, around_grad_x = _fenced(size)
    grad_residual, around_grad_residual = _fenced(size)
    partial, around_partial = _fenced((call.sums(), programs, size[1]))
    residual_norm.normalise_into(output, call)
    residual_norm.norm_gradients_into(grad_x, grad_residual, partial, _fenced_copy(torch.randn(size)), call)
    for memory in (around_output, around_grad_x, around_grad_residual, around_partial):
        _assert_fence_stands(memory)
        assert not memory.isnan().any()


def test_columns_that_begin_beyond_two_billion_elements_are_reached() -> None:
    stride = 2**30 + 5  # so the third column begins beyond 2³¹
    reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    memory = torch.frombuffer(mmap.mmap(-1, 2 * (2 * stride + 2), flags=reserved), dtype=torch.float16)
    x = memory.as_strided((2, 3), (1, stride))  # 4 GiB of addresses, of which three pages are used
    x.copy_(torch.randn(2, 3))
    bias = torch.randn(3).half()
    torch.testing.assert_close(bias_activation.activate(x, bias, "silu"), F.silu(x + bias), rtol=4e-3, atol=4e-3)


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "no:xdist", __file__]))


@triton.jit
def _uniform(out_ptr, seed, first, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(out_ptr + at, tl.rand(seed, first + at))


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
@pytest.mark.parametrize("first", [0, 5000, 2**33])
def test_pytorch_has_the_random_numbers_of_triton(seed: int, first: int) -> None:
    found = torch.empty(64)
    _uniform[(1,)](found, seed, first, block=64)
    assert torch.equal(found, uniform_numbers(seed, first + torch.arange(64)))
    assert 0.3 < float(found.mean()) < 0.7
