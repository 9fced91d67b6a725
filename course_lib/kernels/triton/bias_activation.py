"""Forward and backward kernels of `activation(x + bias)`.

A program processes some columns of rows, as many as a warp reads at a time, so that no lane waits at the end of a row.
In the forward pass it reads x and writes the result. In the backward pass it reads the gradient and x, adds x and bias
again instead of reading their sum, and writes the gradient of x. It sums the bias gradients of its rows in registers.
One small kernel at the end adds the partial sums of all programs. Arithmetic is in float32, whatever the dtype.
"""

import torch
import triton
import triton.language as tl

from course_lib.kernels.triton.column_sums import total_sums
from course_lib.kernels.triton.tiles import (
    as_matrix,
    flat_tiles,
    load_rows,
    load_vector,
    on_device_of,
    persistent_programs,
)

_FORWARD_PER_LANE, _BACKWARD_PER_LANE = 16, 8  # elements
_BACKWARD_REGISTERS = 56  # the most that Triton's code for sm_90 takes


def activate(x: torch.Tensor, bias: torch.Tensor, activation: str) -> torch.Tensor:
    """Return `activation(x + bias)`, which is "gelu", "gelu_tanh" or "silu", with the strides that eager gives it."""
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if output.numel() > 0:
        activate_into(as_matrix(output), as_matrix(x), bias.contiguous(), activation)
    if x.is_contiguous():
        return output
    stride = (x.to("meta") + bias.to("meta")).stride()
    in_order = torch.empty_strided(x.shape, stride, dtype=x.dtype, device=x.device)
    return output if stride == output.stride() else in_order.copy_(output)


def activate_into(output: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, activation: str) -> None:
    """Write `activation(x + bias)` for a matrix x into the contiguous matrix `output`."""
    tiles = flat_tiles(x, per_lane=_FORWARD_PER_LANE)
    with on_device_of(x):
        _forward[(tiles.count * tiles.parts,)](
            (x, bias, output),
            tuple(x.shape),
            x.stride(),
            ACTIVATION=activation,
            ROWS=tiles.rows,
            COLUMNS=tiles.columns,
            PARTS=tiles.parts,
            num_warps=tiles.warps,
        )


def activation_gradients(
    grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, activation: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient of x, contiguous, and that of the bias."""
    grad_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if grad_x.numel() == 0:
        return grad_x, torch.zeros_like(bias)
    matrix = as_matrix(x)
    partial = torch.empty(backward_programs(matrix), matrix.shape[1], dtype=torch.float32, device=x.device)
    activation_gradients_into(as_matrix(grad_x), partial, as_matrix(grad), matrix, bias.contiguous(), activation)
    return grad_x, total_sums(partial[None], bias.dtype)[0]


def backward_programs(x: torch.Tensor) -> int:
    """Return the number of programs of the backward kernel for each part of a row of a matrix x."""
    tiles = flat_tiles(x, per_lane=_BACKWARD_PER_LANE)
    return triton.cdiv(persistent_programs(x, tiles, registers=_BACKWARD_REGISTERS), tiles.parts)


def activation_gradients_into(
    grad_x: torch.Tensor,
    partial: torch.Tensor,
    grad: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor,
    activation: str,
) -> None:
    """Write the gradient of a matrix x into `grad_x`, and partial sums of the bias into `partial`, one row per program.

    Both are contiguous.
    """
    tiles = flat_tiles(x, per_lane=_BACKWARD_PER_LANE)
    with on_device_of(x):
        _backward[(partial.shape[0] * tiles.parts,)](
            (grad, x, bias, grad_x, partial),
            tuple(x.shape),
            grad.stride(),
            x.stride(),
            ACTIVATION=activation,
            ROWS=tiles.rows,
            COLUMNS=tiles.columns,
            PARTS=tiles.parts,
            num_warps=tiles.warps,
        )


@triton.jit
def _forward(
    pointers,
    sizes,
    x_strides,
    ACTIVATION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    x_ptr, bias_ptr, output_ptr = pointers
    num_rows, num_columns = sizes
    # Rows are 64-bit numbers, since row times stride exceeds 2³¹ in tensors that fit on one GPU.
    row = ((tl.program_id(0) // PARTS).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.program_id(0) % PARTS * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < num_rows) & (column < num_columns)
    x = load_rows(x_ptr, row, column, x_strides, inside)
    value = _activation(x + load_vector(bias_ptr, column, column < num_columns), ACTIVATION)
    tl.store(output_ptr + row * num_columns + column, value, mask=inside)


@triton.jit
def _backward(
    pointers,
    sizes,
    grad_strides,
    x_strides,
    ACTIVATION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    grad_ptr, x_ptr, bias_ptr, grad_x_ptr, partial_ptr = pointers
    num_rows, num_columns = sizes
    program = tl.program_id(0) // PARTS
    column = tl.program_id(0) % PARTS * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_column = column < num_columns
    bias = load_vector(bias_ptr, column, is_column)
    for_bias = tl.zeros([ROWS, COLUMNS], tl.float32)
    for tile in range(program, tl.cdiv(num_rows, ROWS), tl.num_programs(0) // PARTS):
        row = (tile * ROWS + tl.arange(0, ROWS).to(tl.int64))[:, None]
        inside = (row < num_rows) & is_column
        x = load_rows(x_ptr, row, column, x_strides, inside)
        grad = load_rows(grad_ptr, row, column, grad_strides, inside)
        grad_x = grad * _derivative(x + bias, ACTIVATION)
        tl.store(grad_x_ptr + row * num_columns + column, grad_x, mask=inside)
        for_bias += grad_x  # outside the gradient is zero
    own_row = partial_ptr + program.to(tl.int64) * num_columns
    tl.store(own_row + column, tl.sum(for_bias, axis=0)[None, :], mask=is_column)


@triton.jit
def _activation(z, ACTIVATION: tl.constexpr):
    if ACTIVATION == "gelu":
        return z * _normal(z)[0]
    elif ACTIVATION == "gelu_tanh":
        # ½·(1 + tanh(u)) is sigmoid(2u); the number is √(2/π)
        return z * tl.sigmoid(2.0 * 0.7978845608028654 * (z + 0.044715 * z * z * z))
    else:
        return z * tl.sigmoid(z)


@triton.jit
def _derivative(z, ACTIVATION: tl.constexpr):
    if ACTIVATION == "gelu":
        below, bell = _normal(z)
        return below + z * 0.3989422804014327 * bell  # Φ(z) + z·φ(z); the number is 1/√(2π)
    elif ACTIVATION == "gelu_tanh":
        gate = tl.sigmoid(2.0 * 0.7978845608028654 * (z + 0.044715 * z * z * z))
        inner = 2.0 * 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * z * z)
        return gate + z * gate * (1.0 - gate) * inner
    else:
        gate = tl.sigmoid(z)
        return gate * (1.0 + z * (1.0 - gate))


@triton.jit
def _normal(z):
    """Return Φ(z), at most 1e-7 wrong, and exp(−z²/2), which is the only exponential that it needs.

    Of |z| the formula of Abramowitz and Stegun, 7.1.26, gives what lies above: a polynomial times the exponential.
    The error function of CUDA takes three times as many instructions.
    """
    distance = tl.abs(z)
    bell = tl.exp(-0.5 * z * z)
    t = 1.0 / (1.0 + 0.23164189 * distance)  # 0.3275911 · √½
    above = ((((0.5307027145 * t - 0.7265760135) * t + 0.7107068705) * t - 0.142248368) * t + 0.127414796) * t * bell
    return tl.where(z > 0, 1.0 - above, above), bell
