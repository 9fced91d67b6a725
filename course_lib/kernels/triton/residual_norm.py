"""Define forward and backward kernels of the operators that add to a residual and normalise rows.

There is one forward and one backward kernel. Triton compiles variants of them for the operation on x (none, add a bias,
multiply by a scale), with or without dropout, and with LayerNorm or RMSNorm. A program processes whole rows. In the
backward pass it computes the rows and their statistics again instead of reading them, and sums the vector gradients of
its rows in registers. Small sums at the end add the partial sums of all programs. Arithmetic and statistics are in
float32, whatever the dtype.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from course_lib.kernels.dropout import ROUNDS, threshold
from course_lib.kernels.triton.tiles import (
    Tiles,
    as_matrix,
    load_rows,
    load_vector,
    on_device_of,
    persistent_programs,
    tiles_of,
)

_ROUNDS = tl.constexpr(ROUNDS)
# Compiled for sm_90, the backward kernel takes 64 registers with four elements per thread, and 118 with eight.
# With four, twice as many warps can wait for memory at the same time. Some variants take up to 80: a scale with
# dropout, and tiles of several rows. A test compares these numbers with the compiler's.
_BACKWARD_PER_THREAD, _REGISTERS_PER_ELEMENT, _REGISTERS_IF_CROWDED = 4, 16, 20


@dataclass(frozen=True)
class ResidualNorm:
    """Hold the tensors of one call, and choose the variant of the kernels."""

    x: torch.Tensor
    vector: torch.Tensor | None  # the bias that is added to x, or the scale that x is multiplied by
    residual: torch.Tensor
    weight: torch.Tensor
    norm_bias: torch.Tensor | None  # None means RMSNorm
    seed: torch.Tensor | None
    p: float
    eps: float
    multiplies: bool = False

    def variant(self, tiles: Tiles) -> dict[str, object]:
        """Return the compile-time arguments that choose the variant."""
        return {
            "VECTOR": "none" if self.vector is None else "scale" if self.multiplies else "bias",
            "DROPS": self.seed is not None,
            "LAYER_NORM": self.norm_bias is not None,
            "ROWS": tiles.rows,
            "COLUMNS": tiles.columns,
            "num_warps": tiles.warps,
        }

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Return x, residual, vector, weight, bias and seed; in place of a missing one, a tensor that is never read."""
        weight = self.weight.contiguous()
        vector = weight if self.vector is None else self.vector.contiguous()
        norm_bias = weight if self.norm_bias is None else self.norm_bias.contiguous()
        seed = weight if self.seed is None else self.seed
        return as_matrix(self.x), as_matrix(self.residual), vector, weight, norm_bias, seed

    def numbers(self) -> tuple[float, float, int]:
        """Return eps, the scale of dropout, and the threshold of random words below which an element is dropped."""
        return self.eps, 0.0 if self.p == 1 else 1 / (1 - self.p), threshold(self.p)


def normalise(call: ResidualNorm) -> torch.Tensor:
    """Return the normalised rows, in the shape of x, contiguous."""
    output = torch.empty(call.x.shape, dtype=call.x.dtype, device=call.x.device)
    if output.numel() > 0:
        normalise_into(as_matrix(output), call)
    return output


def normalise_into(output: torch.Tensor, call: ResidualNorm) -> None:
    """Write the normalised rows into the contiguous matrix `output`."""
    x, residual, *others = call.inputs()
    tiles = tiles_of(x)
    with on_device_of(x):
        _forward[(tiles.count,)](
            (x, residual, *others, output),
            tuple(x.shape),
            x.stride(),
            residual.stride(),
            call.numbers(),
            **call.variant(tiles),
        )


def norm_gradients(
    grad: torch.Tensor, call: ResidualNorm
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, vector, residual, weight and bias; those of x and of the missing ones may be empty.

    The gradient of x is empty where it is that of the residual.
    """
    x, device = call.x, call.x.device
    grad_residual = torch.empty(x.shape, dtype=x.dtype, device=device)
    apart = call.seed is not None or call.multiplies
    grad_x = torch.empty_like(grad_residual) if apart else x.new_empty(0)
    if x.numel() == 0:
        zeros = torch.zeros_like(call.weight)
        return grad_x, zeros, grad_residual, zeros.clone(), zeros.clone()
    matrix = as_matrix(x)
    partial = torch.empty(3, backward_programs(call), matrix.shape[1], dtype=torch.float32, device=device)
    grad_rows = as_matrix(grad_residual)
    norm_gradients_into(as_matrix(grad_x) if apart else grad_rows, grad_rows, partial, as_matrix(grad), call)
    for_vector, for_weight, for_bias = (part.sum(dim=0).to(x.dtype) for part in partial)
    return grad_x, for_vector, grad_residual, for_weight, for_bias


def backward_programs(call: ResidualNorm) -> int:
    """Return the number of programs of the backward kernel, each of which writes a row of partial sums."""
    matrix = as_matrix(call.x)
    tiles = tiles_of(matrix, per_thread=_BACKWARD_PER_THREAD)
    per_thread = tiles.rows * tiles.columns // (32 * tiles.warps)
    is_crowded = tiles.rows > 1 or (call.multiplies and call.seed is not None)
    each = _REGISTERS_IF_CROWDED if is_crowded else _REGISTERS_PER_ELEMENT
    return persistent_programs(matrix, tiles, registers=min(128, each * per_thread))


def norm_gradients_into(
    grad_x: torch.Tensor,
    grad_residual: torch.Tensor,
    partial: torch.Tensor,
    grad: torch.Tensor,
    call: ResidualNorm,
) -> None:
    """Write the gradients of the rows, and partial sums for the vectors to `partial`, (3, programs, columns).

    All three are contiguous.
    """
    x, residual, vector, weight, _, seed = call.inputs()
    with on_device_of(x):
        _backward[(partial.shape[1],)](
            (grad, x, residual, vector, weight, seed, grad_x, grad_residual, partial),
            tuple(x.shape),
            grad.stride(),
            x.stride(),
            residual.stride(),
            call.numbers(),
            **call.variant(tiles_of(x, per_thread=_BACKWARD_PER_THREAD)),
        )


@triton.jit
def _forward(
    pointers,
    sizes,
    x_strides,
    residual_strides,
    numbers,
    VECTOR: tl.constexpr,
    DROPS: tl.constexpr,
    LAYER_NORM: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    x_ptr, residual_ptr, vector_ptr, weight_ptr, bias_ptr, seed_ptr, output_ptr = pointers
    num_rows, num_columns = sizes
    # Rows are 64-bit numbers, since row times stride exceeds 2³¹ in tensors that fit on one GPU.
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    is_column = column < num_columns
    inside = (row < num_rows) & is_column
    x = load_rows(x_ptr, row, column, x_strides, inside)
    residual = load_rows(residual_ptr, row, column, residual_strides, inside)
    vector = load_vector(vector_ptr, column, is_column)
    factors = _dropout_factors(seed_ptr, row, numbers, DROPS, ROWS, COLUMNS)
    rows = residual + _with_vector(x, vector, VECTOR) * factors
    normalised, _ = _normalised(rows, inside, num_columns, numbers[0], LAYER_NORM)
    output = normalised * load_vector(weight_ptr, column, is_column)
    if LAYER_NORM:
        output = output + load_vector(bias_ptr, column, is_column)
    tl.store(output_ptr + row * num_columns + column, output, mask=inside)


@triton.jit
def _backward(
    pointers,
    sizes,
    grad_strides,
    x_strides,
    residual_strides,
    numbers,
    VECTOR: tl.constexpr,
    DROPS: tl.constexpr,
    LAYER_NORM: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    grad_ptr, x_ptr, residual_ptr, vector_ptr, weight_ptr, seed_ptr, grad_x_ptr, grad_residual_ptr, sums_ptr = pointers
    num_rows, num_columns = sizes
    column = tl.arange(0, COLUMNS)[None, :]
    vector = load_vector(vector_ptr, column, column < num_columns)
    weight = load_vector(weight_ptr, column, column < num_columns)
    for_vector, for_weight, for_bias = _zeros(ROWS, COLUMNS), _zeros(ROWS, COLUMNS), _zeros(ROWS, COLUMNS)
    for tile in range(tl.program_id(0), tl.cdiv(num_rows, ROWS), tl.num_programs(0)):
        row = (tile * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
        inside = (row < num_rows) & (column < num_columns)
        grad = load_rows(grad_ptr, row, column, grad_strides, inside)
        x = load_rows(x_ptr, row, column, x_strides, inside)
        residual = load_rows(residual_ptr, row, column, residual_strides, inside)
        factors = _dropout_factors(seed_ptr, row, numbers, DROPS, ROWS, COLUMNS)
        rows = residual + _with_vector(x, vector, VECTOR) * factors
        normalised, factor = _normalised(rows, inside, num_columns, numbers[0], LAYER_NORM)
        grad_rows = _gradient_of_rows(grad * weight, normalised, factor, num_columns, LAYER_NORM)
        tl.store(grad_residual_ptr + row * num_columns + column, grad_rows, mask=inside)
        grad_x, of_vector = _gradient_of_x(tl.where(inside, grad_rows * factors, 0.0), x, vector, VECTOR)
        if DROPS or VECTOR == "scale":  # otherwise it is the gradient of the residual
            tl.store(grad_x_ptr + row * num_columns + column, grad_x, mask=inside)
        for_vector += of_vector
        for_weight += grad * normalised
        for_bias += grad
    _store_sums(sums_ptr, column, num_columns, for_vector, for_weight, for_bias)


@triton.jit
def _zeros(ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.zeros([ROWS, COLUMNS], tl.float32)


@triton.jit
def _dropout_factors(seed_ptr, row, numbers, DROPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the factors of dropout for a tile, equal to `course_lib.kernels.dropout.dropout_factors`."""
    if DROPS:
        _, scale, threshold = numbers
        group = tl.arange(0, COLUMNS // 4)[None, :].to(tl.uint32) + tl.zeros([ROWS, 1], tl.uint32)
        zero = group * 0
        low, high = row.to(tl.uint32) + zero, (row >> 32).to(tl.uint32) + zero
        a, b, c, d = tl.philox(tl.load(seed_ptr), group, low, high, zero, n_rounds=_ROUNDS)
        words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))  # a0 b0 c0 d0 a1 b1 …
        factors = tl.where(words >= tl.full([1, 1], threshold, tl.int64).to(tl.uint32), scale, 0.0)
    else:
        factors = tl.full([1, 1], 1.0, tl.float32)
    return factors


@triton.jit
def _with_vector(x, vector, VECTOR: tl.constexpr):
    if VECTOR == "bias":
        x = x + vector
    if VECTOR == "scale":
        x = x * vector
    return x


@triton.jit
def _normalised(rows, inside, num_columns, eps, LAYER_NORM: tl.constexpr):
    """Return the rows without mean (LayerNorm only) and with unit mean square, and the factors of this scaling."""
    if LAYER_NORM:
        rows = rows - tl.sum(tl.where(inside, rows, 0.0), axis=1)[:, None] / num_columns
    rows = tl.where(inside, rows, 0.0)
    factor = 1.0 / tl.sqrt(tl.sum(rows * rows, axis=1)[:, None] / num_columns + eps)
    return rows * factor, factor


@triton.jit
def _gradient_of_rows(grad, normalised, factor, num_columns, LAYER_NORM: tl.constexpr):
    # Subtract what changes the statistics: the part along the normalised row and, for LayerNorm, the mean.
    along = tl.sum(grad * normalised, axis=1)[:, None] / num_columns
    found = grad - normalised * along
    if LAYER_NORM:
        found = found - tl.sum(grad, axis=1)[:, None] / num_columns
    return found * factor


@triton.jit
def _gradient_of_x(grad_dropped, x, vector, VECTOR: tl.constexpr):
    if VECTOR == "scale":
        grad_x, of_vector = grad_dropped * vector, grad_dropped * x
    else:
        grad_x, of_vector = grad_dropped, grad_dropped
    return grad_x, of_vector


@triton.jit
def _store_sums(sums_ptr, column, num_columns, for_vector, for_weight, for_bias):
    """Write the partial sums of the three vectors into this program's row of each of three matrices."""
    own_row = sums_ptr + tl.program_id(0).to(tl.int64) * num_columns
    one_matrix = tl.num_programs(0).to(tl.int64) * num_columns
    is_column = column < num_columns
    tl.store(own_row + column, tl.sum(for_vector, axis=0)[None, :], mask=is_column)
    tl.store(own_row + one_matrix + column, tl.sum(for_weight, axis=0)[None, :], mask=is_column)
    tl.store(own_row + 2 * one_matrix + column, tl.sum(for_bias, axis=0)[None, :], mask=is_column)
