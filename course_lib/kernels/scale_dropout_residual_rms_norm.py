"""Define the operator `course_lib::scale_dropout_residual_rms_norm`, the end of each half of a layer with a scale.

It consists of two operators, as PyTorch's own dropout does: see `course_lib.kernels.dropout`.

The eager body computes what the separate PyTorch operators compute, in the same order, so using this operator changes
no value except the random choice. The C++ body for a CPU and the kernel for a GPU round less often.
They do not write the intermediates and the mask to memory.
"""

import torch
import torch.nn.functional as F

from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.kernels.dispatch import runs_as_kernel, sum_to_bias
from course_lib.kernels.dropout import DropoutOperator, add_dropped

_OPERATOR = DropoutOperator("scale_dropout_residual_rms_norm", ("x", "scale", "residual", "weight"), "aten::rms_norm")


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

    `x` and `residual` have shape (..., N), `scale` and `weight` have shape (N,); all have one floating-point dtype. The
    mean of the squares is computed in float32 or higher precision. Raises `KernelError` for anything else.
    """
    return torch.ops.course_lib.scale_dropout_residual_rms_norm.default(x, scale, residual, weight, p, training, eps)


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
    """Return `rms_norm(residual + x * scale * dropout_factors(seed, p))`; without a seed, dropout does nothing."""
    _OPERATOR.check(x, scale, residual, weight)
    if runs_as_kernel("scale_dropout_residual_rms_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, normalise

        return normalise(ResidualNorm(x, scale, residual, weight, None, seed, p, eps, multiplies=True))
    if bodies := cpu_bodies(x):
        return bodies.normalise(x, scale, residual, weight, None, seed, p, eps, True)
    return formula(x, scale, residual, weight, seed, p, eps)


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
    if bodies := cpu_bodies(x, grad):
        return bodies.norm_gradients(grad, x, scale, residual, weight, None, seed, p, eps, True)[:4]
    grad_x, grad_scale, grad_residual, grad_weight = gradients(grad, x, scale, residual, weight, seed, p, eps)
    return grad_x.contiguous(), grad_scale, grad_residual.contiguous(), grad_weight


def formula(
    x: torch.Tensor,
    scale: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    """Return what the operator with a seed returns, by operators of PyTorch."""
    return F.rms_norm(add_dropped(x * scale, residual, seed, p)[0], weight.shape, weight, eps).contiguous()


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
    """Return the gradients of the four tensors, by differentiable operators of PyTorch."""
    rows, factors = add_dropped(x * scale, residual, seed, p)
    grad_rows, grad_weight = rms_norm_gradients(grad, rows, weight, eps)
    grad_scaled = grad_rows if factors is None else grad_rows * factors
    return grad_scaled * scale, sum_to_bias(grad_scaled * x), grad_rows, grad_weight


def rms_norm_gradients(
    grad: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of `rms_norm(rows)` with respect to rows and weight.

    With r = 1/√(mean(rows²) + eps) and n = rows·r, the output is n·weight. The rows change n directly, by the factor r,
    and through r. The change through r removes the part of the gradient along n.
    """
    dtype = torch.promote_types(rows.dtype, torch.float32)
    wide = rows.to(dtype)
    r = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    normalised, grad_normalised = wide * r, grad.to(dtype) * weight.to(dtype)
    along = (grad_normalised * normalised).mean(dim=-1, keepdim=True)
    grad_rows = r * (grad_normalised - normalised * along)
    return grad_rows.to(rows.dtype), sum_to_bias(grad.to(dtype) * normalised).to(weight.dtype)


_OPERATOR.register(scale_dropout_residual_rms_norm_seeded, scale_dropout_residual_rms_norm_backward, formula, gradients)
