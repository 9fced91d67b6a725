"""The operator `course_lib::scale_dropout_residual_rms_norm`: what follows each half of a layer with a learnt scale.

It comes in two layers, as `bias_dropout_residual_layer_norm` does: the one to call, and to find in a graph, draws a
seed where it needs one; the other, whose name ends in `_seeded`, is a function of its inputs alone.

The eager body computes what the separate PyTorch operators compute, in the same order, so using this operator never
changes a value but the random choice. What a GPU kernel gains are the intermediates and the mask.
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
from course_lib.kernels.row_operands import check_probability, check_rows

_NAME = "course_lib::scale_dropout_residual_rms_norm"
torch.library.define(
    _NAME,
    "(Tensor x, Tensor scale, Tensor residual, Tensor weight, "
    "float p=0.5, bool training=True, float eps=1e-05) -> Tensor",
)


def scale_dropout_residual_rms_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Return `rms_norm(residual + dropout(x * scale, p, training))`, as a new contiguous tensor.

        >>> ones = torch.ones(2)
        >>> scale_dropout_residual_rms_norm(torch.tensor([[2.0, 2.0]]), ones, torch.zeros(1, 2), ones, 0.0, eps=0.0)
        tensor([[1., 1.]])

    `x` and `residual` have shape (..., N), `scale` and `weight` have shape (N,); all have one floating-point dtype.
    The mean of the squares is found in float32 at least. Raises `KernelError` for anything else.
    """
    return torch.ops.course_lib.scale_dropout_residual_rms_norm.default(x, scale, residual, weight, p, training, eps)


@torch.library.impl(_NAME, ["CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"])
def _with_fresh_seed(
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    eps: float = 1e-5,
) -> torch.Tensor:
    check_probability("scale_dropout_residual_rms_norm", p)
    seed = draw_seed(x) if training and p > 0 else None
    return scale_dropout_residual_rms_norm_seeded(x, scale, residual, weight, seed, p, eps)


@torch.library.custom_op("course_lib::scale_dropout_residual_rms_norm_seeded", mutates_args=())
def scale_dropout_residual_rms_norm_seeded(
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    """Return `rms_norm(residual + x * scale * dropout_factors(seed, p))`; without a seed, nothing falls out."""
    _check(x, scale, residual, weight)
    if runs_as_kernel("scale_dropout_residual_rms_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, normalise

        return normalise(ResidualNorm(x, scale, residual, weight, None, seed, p, eps, multiplies=True))
    return F.rms_norm(_sum(x, scale, residual, seed, p)[0], weight.shape, weight, eps).contiguous()


@torch.library.custom_op("course_lib::scale_dropout_residual_rms_norm_backward", mutates_args=())
def scale_dropout_residual_rms_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, scale, residual and weight, the rows contiguous."""
    if runs_as_kernel("scale_dropout_residual_rms_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, norm_gradients

        call = ResidualNorm(x, scale, residual, weight, None, seed, p, eps, multiplies=True)
        return norm_gradients(grad, call)[:4]
    grad_x, grad_scale, grad_residual, grad_weight = gradients(grad, x, scale, residual, weight, seed, p, eps)
    return grad_x.contiguous(), grad_scale, grad_residual.contiguous(), grad_weight


def gradients(
    grad: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of the four tensors, by operators of PyTorch that have derivatives themselves."""
    rows, factors = _sum(x, scale, residual, seed, p)
    grad_rows, grad_weight = rms_norm_gradients(grad, rows, weight, eps)
    grad_scaled = grad_rows if factors is None else grad_rows * factors
    return grad_scaled * scale, sum_to_bias(grad_scaled * x), grad_rows, grad_weight


def rms_norm_gradients(
    grad: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of `rms_norm(rows)` with respect to rows and weight.

    With r = 1/√(mean(rows²) + eps) and n = rows·r, the output is n·weight. A change of rows changes n directly, by r,
    and through r, which takes away the part of the gradient that points along n.
    """
    dtype = torch.promote_types(rows.dtype, torch.float32)
    wide = rows.to(dtype)
    r = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    normalised, grad_normalised = wide * r, grad.to(dtype) * weight.to(dtype)
    along = (grad_normalised * normalised).mean(dim=-1, keepdim=True)
    grad_rows = r * (grad_normalised - normalised * along)
    return grad_rows.to(rows.dtype), sum_to_bias(grad.to(dtype) * normalised).to(weight.dtype)


def _sum(
    x: torch.Tensor, scale: torch.Tensor, residual: torch.Tensor, seed: torch.Tensor | None, p: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the rows that are normalised, and what dropout multiplied with."""
    if seed is None:
        return x * scale + residual, None
    factors = dropout_factors(seed, p, x)
    return x * scale * factors + residual, factors


def _check(x: torch.Tensor, scale: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> None:
    check_rows("scale_dropout_residual_rms_norm", {"x": x, "residual": residual}, {"scale": scale, "weight": weight})


def _fake(
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    _check(x, scale, residual, weight)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    return grad_x, torch.empty_like(scale), torch.empty_like(grad_x), torch.empty_like(weight)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.p, ctx.eps = inputs
    ctx.save_for_backward(*tensors)  # the seed among them, instead of a mask


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    # Grad mode is on when someone differentiates the gradient, and the backward operator has no derivative.
    function: Callable[..., tuple[torch.Tensor, ...]] = scale_dropout_residual_rms_norm_backward
    if torch.is_grad_enabled():
        function = gradients
    return *function(grad, *ctx.saved_tensors, ctx.p, ctx.eps), None, None, None


scale_dropout_residual_rms_norm_seeded.register_fake(_fake)
scale_dropout_residual_rms_norm_seeded.register_autograd(_backward, setup_context=_setup_context)
scale_dropout_residual_rms_norm_backward.register_fake(_fake_backward)
register_vmap(scale_dropout_residual_rms_norm_seeded, rows=(0, 2))
register_vmap(scale_dropout_residual_rms_norm_backward)
register_autocast("scale_dropout_residual_rms_norm", rows=(0, 1, 2), normalises=True)
register_autocast("scale_dropout_residual_rms_norm_seeded", rows=(0, 1, 2), normalises=True)
