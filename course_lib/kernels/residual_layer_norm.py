"""Define the operator `course_lib::residual_layer_norm`: add a residual, then normalise each row.

The eager body computes what the two separate PyTorch operators compute, in the same order, so fusing onto this operator
never changes a value. The C++ body for a CPU and the kernel for a GPU round less often. They do not write the sum to
memory and read it again: they read 2N elements and write N, instead of 3N and 2N. The backward pass computes the sum,
the mean and the variance again instead of reading them from memory.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.kernels.dispatch import check_rows, runs_as_kernel
from course_lib.kernels.formula_derivatives import register_formula
from course_lib.kernels.transforms import documented, register_autocast, register_vmap


@documented
@torch.library.custom_op("course_lib::residual_layer_norm", mutates_args=())
def residual_layer_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Return `layer_norm(x + residual)` over the last dimension, as a new contiguous tensor.

        >>> residual_layer_norm(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2), torch.ones(2), torch.zeros(2), eps=0.0)
        tensor([[-1.,  1.]])

    `x` and `residual` have shape (..., N), `weight` and `bias` have shape (N,), all of one floating-point dtype. Mean
    and variance are computed in float32 or higher precision. Raises `KernelError` for anything else.
    """
    _check(x, residual, weight, bias)
    if runs_as_kernel("residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, normalise

        return normalise(ResidualNorm(x, None, residual, weight, bias, None, 0.0, eps))
    if bodies := cpu_bodies(x):
        return bodies.normalise(x, None, residual, weight, bias, None, 0.0, eps, False)
    return formula(x, residual, weight, bias, eps)


@torch.library.custom_op("course_lib::residual_layer_norm_backward", mutates_args=())
def residual_layer_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of the sum, of `weight` and of `bias`; both operands have the gradient of the sum."""
    if runs_as_kernel("residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, norm_gradients

        found = norm_gradients(grad, ResidualNorm(x, None, residual, weight, bias, None, 0.0, eps))
        return found[2], found[3], found[4]
    if bodies := cpu_bodies(x, grad):
        found = bodies.norm_gradients(grad, x, None, residual, weight, bias, None, 0.0, eps, False)
        return found[2], found[3], found[4]
    return gradients(grad, x, residual, weight, bias, eps)


def formula(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Return what the operator returns, by operators of PyTorch."""
    _check(x, residual, weight, bias)
    return F.layer_norm(x + residual, weight.shape, weight, bias, eps)


def gradients(
    grad: torch.Tensor,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the results of the backward operator, by differentiable operators of PyTorch."""
    return layer_norm_gradients(grad, x + residual, weight, bias, eps)


def layer_norm_gradients(
    grad: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of `layer_norm(rows)` with respect to rows, weight and bias."""
    shape = list(weight.shape)
    with torch.no_grad():  # the derivative of the next operator accounts for mean and rstd
        _, mean, rstd = torch.native_layer_norm(rows, shape, weight, bias, eps)
    found = torch.ops.aten.native_layer_norm_backward(
        grad.contiguous(), rows.contiguous(), shape, mean, rstd, weight, bias, [True, True, True]
    )
    return found[0], found[1], found[2]


def _check(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> None:
    check_rows("residual_layer_norm", {"x": x, "residual": residual}, {"weight": weight, "bias": bias})


def _fake(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    _check(x, residual, weight, bias)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    grad_sum = torch.empty_like(x, memory_format=torch.contiguous_format)
    return grad_sum, torch.empty_like(weight), torch.empty_like(bias)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.eps = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    # Grad mode is on for second derivatives, and the backward operator has no derivative.
    function: Callable[..., tuple[torch.Tensor, ...]] = residual_layer_norm_backward
    if torch.is_grad_enabled():
        function = gradients
    grad_sum, grad_weight, grad_bias = function(grad, *ctx.saved_tensors, ctx.eps)
    return grad_sum, grad_sum, grad_weight, grad_bias, None


setattr(residual_layer_norm, "__name__", "residual_layer_norm")  # noqa: B010 - mypy knows no such attribute, and torch.fx names a node after it
residual_layer_norm.register_fake(_fake)
residual_layer_norm.register_autograd(_backward, setup_context=_setup_context)
residual_layer_norm_backward.register_fake(_fake_backward)
register_formula(residual_layer_norm, formula)
register_formula(residual_layer_norm_backward, gradients)
register_vmap(residual_layer_norm, rows=(0, 1))
register_vmap(residual_layer_norm_backward)
register_autocast("residual_layer_norm", rows=(0, 1), last="aten::layer_norm")
