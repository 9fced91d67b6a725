"""The operator `course_lib::bias_dropout_residual_layer_norm`: what follows each half of a Transformer layer.

It comes in two layers, as PyTorch's own dropout does. The one to call, and to find in a graph, takes `training` and
decides whether anything is random: then it draws a seed. The other, whose name ends in `_seeded`, is a function of
its inputs alone, the seed among them; it does the work and has the gradient.

The eager body computes what the separate PyTorch operators compute, in the same order, so fusing onto this operator
never changes a value but the random choice. What a GPU kernel gains are the three intermediates and the mask, which
need not be written to memory and read again: 2N elements read and N written, against 6N and 4N, and the mask twice.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.kernels.batching import register_vmap
from course_lib.kernels.bias_operand import sum_to_bias
from course_lib.kernels.dispatch import runs_as_kernel
from course_lib.kernels.dropout import draw_seed, dropout_factors
from course_lib.kernels.mixed_precision import register_autocast
from course_lib.kernels.residual_layer_norm import layer_norm_gradients
from course_lib.kernels.row_operands import check_probability, check_rows

_NAME = "course_lib::bias_dropout_residual_layer_norm"
torch.library.define(
    _NAME,
    "(Tensor x, Tensor bias, Tensor residual, Tensor weight, Tensor layer_norm_bias, "
    "float p=0.5, bool training=True, float eps=1e-05) -> Tensor",
)


def bias_dropout_residual_layer_norm(
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Return `layer_norm(residual + dropout(x + bias, p, training))`, as a new contiguous tensor.

        >>> row, one, zero = torch.tensor([[1.0, 2.0]]), torch.ones(2), torch.zeros(2)
        >>> bias_dropout_residual_layer_norm(row, zero, row, one, zero, training=False, eps=0.0)
        tensor([[-1.,  1.]])

    `x` and `residual` have shape (..., N); `bias`, `weight` and `layer_norm_bias` have shape (N,); all have one
    floating-point dtype. Mean and variance are found in float32 at least. Raises `KernelError` for anything else.
    """
    return torch.ops.course_lib.bias_dropout_residual_layer_norm.default(
        x, bias, residual, weight, layer_norm_bias, p, training, eps
    )


@torch.library.impl(_NAME, ["CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"])
def _with_fresh_seed(
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    eps: float = 1e-5,
) -> torch.Tensor:
    check_probability("bias_dropout_residual_layer_norm", p)
    seed = draw_seed(x) if training and p > 0 else None
    return bias_dropout_residual_layer_norm_seeded(x, bias, residual, weight, layer_norm_bias, seed, p, eps)


@torch.library.custom_op("course_lib::bias_dropout_residual_layer_norm_seeded", mutates_args=())
def bias_dropout_residual_layer_norm_seeded(
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    """Return `layer_norm(residual + (x + bias) * dropout_factors(seed, p))`; without a seed, nothing falls out."""
    _check(x, bias, residual, weight, layer_norm_bias)
    if runs_as_kernel("bias_dropout_residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, normalise

        return normalise(ResidualNorm(x, bias, residual, weight, layer_norm_bias, seed, p, eps))
    return F.layer_norm(_sum(x, bias, residual, seed, p)[0], weight.shape, weight, layer_norm_bias, eps)


@torch.library.custom_op("course_lib::bias_dropout_residual_layer_norm_backward", mutates_args=())
def bias_dropout_residual_layer_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, bias, residual, weight and layer_norm_bias.

    Without a seed, `x` has the gradient of `residual`; that of `x` is then an empty tensor, because the outputs of an
    operator may not share memory, and a copy would cost time.
    """
    if runs_as_kernel("bias_dropout_residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, norm_gradients

        return norm_gradients(grad, ResidualNorm(x, bias, residual, weight, layer_norm_bias, seed, p, eps))
    grad_x, *others = gradients(grad, x, bias, residual, weight, layer_norm_bias, seed, p, eps)
    return (grad_x if seed is not None else x.new_empty(0)), others[0], others[1], others[2], others[3]


def gradients(
    grad: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of the five tensors, by operators of PyTorch that have derivatives themselves."""
    rows, factors = _sum(x, bias, residual, seed, p)
    grad_rows, grad_weight, grad_layer_norm_bias = layer_norm_gradients(grad, rows, weight, layer_norm_bias, eps)
    grad_x = grad_rows if factors is None else grad_rows * factors
    return grad_x, sum_to_bias(grad_x), grad_rows, grad_weight, grad_layer_norm_bias


def _sum(
    x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, seed: torch.Tensor | None, p: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the rows that are normalised, and what dropout multiplied with."""
    if seed is None:
        return x + bias + residual, None
    factors = dropout_factors(seed, p, x)
    return (x + bias) * factors + residual, factors


def _check(
    x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, layer_norm_bias: torch.Tensor
) -> None:
    check_rows(
        "bias_dropout_residual_layer_norm",
        {"x": x, "residual": residual},
        {"bias": bias, "weight": weight, "layer_norm_bias": layer_norm_bias},
    )


def _fake(
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    _check(x, bias, residual, weight, layer_norm_bias)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    grad_rows = torch.empty_like(x, memory_format=torch.contiguous_format)
    grad_x = x.new_empty(0) if seed is None else torch.empty_like(grad_rows)
    return grad_x, torch.empty_like(bias), grad_rows, torch.empty_like(weight), torch.empty_like(layer_norm_bias)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.p, ctx.eps = inputs
    ctx.save_for_backward(*tensors)  # the seed among them, instead of a mask


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    # Grad mode is on when someone differentiates the gradient, and the backward operator has no derivative.
    function: Callable[..., tuple[torch.Tensor, ...]] = bias_dropout_residual_layer_norm_backward
    if torch.is_grad_enabled():
        function = gradients
    saved = ctx.saved_tensors  # read once: under activation checkpointing a second read is refused
    grad_x, grad_bias, grad_residual, *others = function(grad, *saved, ctx.p, ctx.eps)
    has_seed = saved[-1] is not None
    return (grad_x if has_seed else grad_residual), grad_bias, grad_residual, *others, None, None, None


bias_dropout_residual_layer_norm_seeded.register_fake(_fake)
bias_dropout_residual_layer_norm_seeded.register_autograd(_backward, setup_context=_setup_context)
bias_dropout_residual_layer_norm_backward.register_fake(_fake_backward)
register_vmap(bias_dropout_residual_layer_norm_seeded, rows=(0, 2))
register_vmap(bias_dropout_residual_layer_norm_backward)
register_autocast("bias_dropout_residual_layer_norm", rows=(0, 1, 2), normalises=True)
register_autocast("bias_dropout_residual_layer_norm_seeded", rows=(0, 1, 2), normalises=True)
