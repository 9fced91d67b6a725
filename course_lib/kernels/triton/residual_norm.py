"""Define forward and backward kernels of the operators that add to a residual and normalise rows.

There is one forward and one backward kernel. Triton compiles variants of them for the operation on x (none, add a bias,
multiply by a scale), with or without dropout, and with LayerNorm or RMSNorm. A program processes whole rows. In the
backward pass it computes the rows and their statistics again instead of reading them, and sums the vector gradients of
its rows in registers. One small kernel at the end adds the partial sums of all programs. Arithmetic and statistics are
in float32, whatever the dtype.

In the backward pass one warp has a whole row where its registers suffice, so that a row's statistics need no barrier:
warps wait neither for each other nor for a row's three reductions one after the other. A row is cut into parts, each as
wide as one read of all lanes, so that a row of 768 is computed as 3 × 256 and not as 1,024.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from course_lib.kernels.dropout import ROUNDS, threshold
from course_lib.kernels.triton.column_sums import total_sums
from course_lib.kernels.triton.row_parts import (
    added,
    centred,
    dot,
    load_parts,
    load_row_parts,
    no_parts,
    places,
    plus,
    plus_products,
    store_sums,
    zero_parts,
)
from course_lib.kernels.triton.tiles import (
    PartedTiles,
    Tiles,
    as_matrix,
    load_rows,
    load_vector,
    on_device_of,
    parted_tiles,
    persistent_programs,
    tiles_of,
)

_ROUNDS = tl.constexpr(ROUNDS)
# What a lane keeps in registers for each of its elements of a row: with a vector the two sums that it adds take more. A
# test compares the number of programs that follows with what the compiler's registers allow.
_MOST_PER_LANE, _REGISTERS_PER_ELEMENT = {False: 32, True: 24}, {False: 7, True: 10}


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

    def variant(self, tiles: Tiles | PartedTiles) -> dict[str, object]:
        """Return the compile-time arguments that choose the variant."""
        return {
            "VECTOR": "none" if self.vector is None else "scale" if self.multiplies else "bias",
            "DROPS": self.seed is not None,
            "LAYER_NORM": self.norm_bias is not None,
            "ROWS": tiles.rows,
            "COLUMNS": tiles.columns,
            "num_warps": tiles.warps,
        }

    def backward_tiles(self) -> PartedTiles:
        """Return how the backward kernel cuts the rows."""
        return parted_tiles(as_matrix(self.x), most_per_lane=_MOST_PER_LANE[self.vector is not None])

    def sums(self) -> int:
        """Return the number of vectors that have a gradient: weight, bias and vector, in this order, if they exist."""
        return 1 + (self.norm_bias is not None) + (self.vector is not None)

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
    partial = torch.empty(call.sums(), backward_programs(call), x.shape[-1], dtype=torch.float32, device=device)
    grad_rows = as_matrix(grad_residual)
    norm_gradients_into(as_matrix(grad_x) if apart else grad_rows, grad_rows, partial, as_matrix(grad), call)
    for_weight, *others = total_sums(partial, x.dtype)
    for_bias = others.pop(0) if call.norm_bias is not None else x.new_empty(0)
    for_vector = others.pop(0) if call.vector is not None else x.new_empty(0)
    return grad_x, for_vector, grad_residual, for_weight, for_bias


def backward_programs(call: ResidualNorm) -> int:
    """Return the number of programs of the backward kernel, each of which writes a row of partial sums."""
    tiles = call.backward_tiles()
    registers = min(255, max(128, _REGISTERS_PER_ELEMENT[call.vector is not None] * tiles.per_lane))
    return persistent_programs(as_matrix(call.x), tiles, registers=registers)


def norm_gradients_into(
    grad_x: torch.Tensor,
    grad_residual: torch.Tensor,
    partial: torch.Tensor,
    grad: torch.Tensor,
    call: ResidualNorm,
) -> None:
    """Write the gradients of the rows, and partial sums for the vectors to `partial`, (sums, programs, columns).

    All three are contiguous.
    """
    x, residual, vector, weight, _, seed = call.inputs()
    tiles = call.backward_tiles()
    with on_device_of(x):
        _backward[(partial.shape[1],)](
            (grad, x, residual, vector, weight, seed, grad_x, grad_residual, partial),
            tuple(x.shape),
            grad.stride(),
            x.stride(),
            residual.stride(),
            call.numbers(),
            **call.variant(tiles),
            PARTS=tiles.parts,
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
    factors = _dropout_factors(seed_ptr, row, 0, numbers, DROPS, ROWS, COLUMNS)
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
    PARTS: tl.constexpr,
):
    grad_ptr, x_ptr, residual_ptr, vector_ptr, weight_ptr, seed_ptr, grad_x_ptr, grad_residual_ptr, sums_ptr = pointers
    num_rows, num_columns = sizes
    vector = load_parts(vector_ptr, num_columns, COLUMNS, PARTS)
    weight = load_parts(weight_ptr, num_columns, COLUMNS, PARTS)
    for_weight = zero_parts(ROWS, COLUMNS, PARTS)
    for_bias = for_weight
    for_vector = for_weight
    for tile in range(tl.program_id(0), tl.cdiv(num_rows, ROWS), tl.num_programs(0)):
        row = (tile * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
        grad = load_row_parts(grad_ptr, row, sizes, grad_strides, COLUMNS, PARTS)
        x = load_row_parts(x_ptr, row, sizes, x_strides, COLUMNS, PARTS)
        residual = load_row_parts(residual_ptr, row, sizes, residual_strides, COLUMNS, PARTS)
        factors = _factors_of_parts(seed_ptr, row, numbers, DROPS, ROWS, COLUMNS, PARTS)
        rows = _added(residual, x, vector, factors, VECTOR, PARTS)
        normalised, factor = _normalised_parts(rows, row, sizes, numbers[0], LAYER_NORM, COLUMNS, PARTS)
        mean, along = _means(grad, weight, normalised, num_columns, LAYER_NORM, PARTS)
        to = grad_x_ptr, grad_residual_ptr
        grad_rows = _gradient_of_rows(grad, weight, normalised, (mean, along, factor), PARTS)
        of_vector = _write(to, row, sizes, grad_rows, factors, (x, vector), VECTOR, DROPS, COLUMNS, PARTS)
        for_weight = plus_products(for_weight, grad, normalised, PARTS)
        if LAYER_NORM:
            for_bias = plus(for_bias, grad, PARTS)
        if VECTOR != "none":
            for_vector = plus(for_vector, of_vector, PARTS)
    _store(sums_ptr, (for_weight, for_bias, for_vector), num_columns, VECTOR, LAYER_NORM, COLUMNS, PARTS)


@triton.jit
def _store(
    sums_ptr,
    sums,
    num_columns,
    VECTOR: tl.constexpr,
    LAYER_NORM: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Write the sums of those vectors that exist, in the order of `ResidualNorm.sums`."""
    store_sums(sums_ptr, 0, sums[0], num_columns, COLUMNS, PARTS)
    if LAYER_NORM:
        store_sums(sums_ptr, 1, sums[1], num_columns, COLUMNS, PARTS)
    if VECTOR != "none":
        store_sums(sums_ptr, 1 + LAYER_NORM, sums[2], num_columns, COLUMNS, PARTS)


@triton.jit
def _gradient_of_rows(grad, weight, normalised, statistics, PARTS: tl.constexpr):
    # Subtract what changes the statistics: the part along the normalised row and, for LayerNorm, the mean.
    mean, along, factor = statistics
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += ((grad[part] * weight[part] - normalised[part] * along - mean) * factor,)
    return found


@triton.jit
def _write(
    to,
    row,
    sizes,
    grad_rows,
    factors,
    branch,
    VECTOR: tl.constexpr,
    DROPS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Write the gradients of x, where it has its own, and of the residual; return those of the vector."""
    x, vector = branch
    of_vector = no_parts()
    for part in tl.static_range(PARTS):
        at, inside = places(row, part, sizes, COLUMNS)
        tl.store(to[1] + at, grad_rows[part], mask=inside)
        dropped = tl.where(inside, grad_rows[part] * factors[part], 0.0)
        grad_x, of_part = _gradient_of_x(dropped, x[part], vector[part], VECTOR)
        if DROPS or VECTOR == "scale":  # otherwise it is the gradient of the residual
            tl.store(to[0] + at, grad_x, mask=inside)
        of_vector += (of_part,)
    return of_vector


@triton.jit
def _factors_of_parts(
    seed_ptr, row, numbers, DROPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr
):
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += (_dropout_factors(seed_ptr, row, part, numbers, DROPS, ROWS, COLUMNS),)
    return found


@triton.jit
def _added(residual, x, vector, factors, VECTOR: tl.constexpr, PARTS: tl.constexpr):
    found = no_parts()
    for part in tl.static_range(PARTS):
        found += (residual[part] + _with_vector(x[part], vector[part], VECTOR) * factors[part],)
    return found


@triton.jit
def _gradient_of_x(grad_dropped, x, vector, VECTOR: tl.constexpr):
    if VECTOR == "scale":
        grad_x, of_vector = grad_dropped * vector, grad_dropped * x
    else:
        grad_x, of_vector = grad_dropped, grad_dropped
    return grad_x, of_vector


@triton.jit
def _dropout_factors(seed_ptr, row, part, numbers, DROPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the factors of dropout for a tile, equal to `course_lib.kernels.dropout.dropout_factors`."""
    if DROPS:
        _, scale, threshold = numbers
        group = (part * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4))[None, :].to(tl.uint32) + tl.zeros(
            [ROWS, 1], tl.uint32
        )
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
def _normalised_parts(rows, row, sizes, eps, LAYER_NORM: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """Return parts of rows as `_normalised` does; rows that are outside are zero, and so are their factors."""
    num_rows, num_columns = sizes
    if LAYER_NORM:
        rows = centred(rows, num_columns, COLUMNS, PARTS)
    mean_square = tl.sum(dot(rows, rows, PARTS), axis=1)[:, None] / num_columns
    factor = tl.where(row < num_rows, 1.0 / tl.sqrt(mean_square + eps), 0.0)
    normalised = no_parts()
    for part in tl.static_range(PARTS):
        normalised += (rows[part] * factor,)
    return normalised, factor


@triton.jit
def _means(grad, weight, normalised, num_columns, LAYER_NORM: tl.constexpr, PARTS: tl.constexpr):
    """Return the mean of the gradients of the normalised row, zero for RMSNorm, and that of them times the row."""
    scaled = no_parts()
    for part in tl.static_range(PARTS):
        scaled += (grad[part] * weight[part],)
    along = dot(scaled, normalised, PARTS)
    if LAYER_NORM:
        # One reduction adds up both numbers of a pair, so that warps wait for each other once.
        mean, along = tl.split(tl.sum(tl.join(added(scaled, PARTS), along), axis=1))
    else:
        along = tl.sum(along, axis=1)
        mean = along * 0.0
    return mean[:, None] / num_columns, along[:, None] / num_columns
