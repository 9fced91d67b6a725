"""Define the operator `course_lib::bias_silu`: add a bias over the last dimension, then apply SiLU.

The eager body computes what the two separate PyTorch operators compute, in the same order, so fusing onto this operator
never changes a value. The C++ body for a CPU and the kernel for a GPU round less often. They do not write the
intermediate `x + bias` to memory and read it again: they read N elements and write N, instead of 2N and 2N.
"""

import functools

import torch
import torch.nn.functional as F

from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.kernels.dispatch import check_bias, runs_as_kernel, sum_to_bias
from course_lib.kernels.transforms import documented, register_bias_operator


@documented
@torch.library.custom_op("course_lib::bias_silu", mutates_args=())
def bias_silu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return `silu(x + bias)`, as a new tensor of the shape of `x`; silu(z) = z·sigmoid(z).

        >>> bias_silu(torch.zeros(2, 3), torch.zeros(3))
        tensor([[0., 0., 0.],
                [0., 0., 0.]])

    `x` has shape (..., N) and `bias` has shape (N,), both of the same floating-point dtype. Raises
    `KernelError` for anything else.
    """
    check_bias("bias_silu", x, bias)
    if runs_as_kernel("bias_silu", x):
        from course_lib.kernels.triton.bias_activation import activate

        return activate(x, bias, "silu")
    if bodies := cpu_bodies(x):
        return bodies.activate(x, bias, "silu")
    return formula(x, bias)


@torch.library.custom_op("course_lib::bias_silu_backward", mutates_args=())
def bias_silu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x, contiguous, and of the bias."""
    if runs_as_kernel("bias_silu", x):
        from course_lib.kernels.triton.bias_activation import activation_gradients

        return activation_gradients(grad, x, bias, "silu")
    if bodies := cpu_bodies(x, grad):
        return bodies.activation_gradients(grad, x, bias, "silu")
    grad_x = torch.ops.aten.silu_backward(grad, x + bias)
    return grad_x.contiguous(), sum_to_bias(grad_x)


def formula(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return what the operator returns, by operators of PyTorch."""
    return F.silu(x + bias)


def gradients(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the results of the backward operator, by differentiable operators of PyTorch.

    With σ for the sigmoid, silu'(z) = σ(z) · (1 + z · (1 − σ(z))).
    """
    # The sum is recomputed and not saved, since reading x again is cheaper than keeping N elements alive.
    z = x + bias
    sigma = torch.sigmoid(z)
    grad_x = grad * sigma * (1 + z * (1 - sigma))
    return grad_x, sum_to_bias(grad_x)


register_bias_operator(
    "bias_silu", bias_silu, bias_silu_backward, formula, gradients, functools.partial(check_bias, "bias_silu")
)
