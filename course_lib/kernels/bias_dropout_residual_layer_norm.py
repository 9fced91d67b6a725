"""Define the operator `course_lib::bias_dropout_residual_layer_norm`, the end of each half of a transformer layer.

It consists of two operators, as PyTorch's own dropout does: see `course_lib.kernels.dropout`.

The eager body computes what the separate PyTorch operators compute, in the same order, so fusing onto this operator
changes no value except the random choice. The C++ body for a CPU and the kernel for a GPU round less often. They do not
write the three intermediates and the mask to memory and read them again: they read 2N elements and write N, instead of
reading 6N, writing 4N and accessing the mask twice.
"""

import torch
import torch.nn.functional as F

from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.kernels.dispatch import runs_as_kernel, sum_to_bias
from course_lib.kernels.dropout import DropoutOperator, add_dropped
from course_lib.kernels.residual_layer_norm import layer_norm_gradients

_OPERATOR = DropoutOperator(
    "bias_dropout_residual_layer_norm",
    ("x", "bias", "residual", "weight", "layer_norm_bias"),
    "aten::layer_norm",
    x_has_the_gradient_of_residual=True,
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
    floating-point dtype. Mean and variance are computed in float32 or higher precision. Raises `KernelError` for
    anything else.
    """
    return torch.ops.course_lib.bias_dropout_residual_layer_norm.default(
        x, bias, residual, weight, layer_norm_bias, p, training, eps
    )


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
    """Return `layer_norm(residual + (x + bias) * dropout_factors(seed, p))`; without a seed, dropout does nothing."""
    _OPERATOR.check(x, bias, residual, weight, layer_norm_bias)
    if runs_as_kernel("bias_dropout_residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, normalise

        return normalise(ResidualNorm(x, bias, residual, weight, layer_norm_bias, seed, p, eps))
    if bodies := cpu_bodies(x):
        return bodies.normalise(x, bias, residual, weight, layer_norm_bias, seed, p, eps, False)
    return formula(x, bias, residual, weight, layer_norm_bias, seed, p, eps)


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
    """Return the gradients of the five tensors; without a seed, that of x is empty, see `DropoutOperator`."""
    if runs_as_kernel("bias_dropout_residual_layer_norm", x):
        from course_lib.kernels.triton.residual_norm import ResidualNorm, norm_gradients

        return norm_gradients(grad, ResidualNorm(x, bias, residual, weight, layer_norm_bias, seed, p, eps))
    if bodies := cpu_bodies(x, grad):
        return bodies.norm_gradients(grad, x, bias, residual, weight, layer_norm_bias, seed, p, eps, False)
    grad_x, *others = gradients(grad, x, bias, residual, weight, layer_norm_bias, seed, p, eps)
    return (grad_x if seed is not None else x.new_empty(0)), others[0], others[1], others[2], others[3]


def formula(
    x: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    layer_norm_bias: torch.Tensor,
    seed: torch.Tensor | None,
    p: float,
    eps: float,
) -> torch.Tensor:
    """Return what the operator with a seed returns, by operators of PyTorch."""
    return F.layer_norm(add_dropped(x + bias, residual, seed, p)[0], weight.shape, weight, layer_norm_bias, eps)


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
    """Return the gradients of the five tensors, by differentiable operators of PyTorch."""
    rows, factors = add_dropped(x + bias, residual, seed, p)
    grad_rows, grad_weight, grad_layer_norm_bias = layer_norm_gradients(grad, rows, weight, layer_norm_bias, eps)
    grad_x = grad_rows if factors is None else grad_rows * factors
    return grad_x, sum_to_bias(grad_x), grad_rows, grad_weight, grad_layer_norm_bias


_OPERATOR.register(
    bias_dropout_residual_layer_norm_seeded, bias_dropout_residual_layer_norm_backward, formula, gradients
)
