"""Define the operator `course_lib::bias_gelu`: add a bias over the last dimension, then apply GELU.

The eager body computes what the two separate PyTorch operators compute, in the same order, so fusing onto this operator
never changes a value. The C++ body for a CPU and the kernel for a GPU round less often. They do not write the
intermediate `x + bias` to memory and read it again: they read N elements and write N, instead of 2N and 2N.

They do not round the sum either, so they are right where the separate operators overflow. In float16, −40000 + −40000
is −∞, and GELU of it is NaN; fused, the result is 0.
"""

import torch
import torch.nn.functional as F

from course_lib.errors import KernelError
from course_lib.kernels.cpu.library import cpu_bodies
from course_lib.kernels.dispatch import check_bias, runs_as_kernel, sum_to_bias
from course_lib.kernels.transforms import documented, register_bias_operator

_FORMULAS = {"none": "gelu", "tanh": "gelu_tanh"}  # their names in the kernels


@documented
@torch.library.custom_op("course_lib::bias_gelu", mutates_args=())
def bias_gelu(x: torch.Tensor, bias: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Return `gelu(x + bias)`, as a new tensor of the shape of `x`.

        >>> bias_gelu(torch.zeros(2, 3), torch.zeros(3))
        tensor([[0., 0., 0.],
                [0., 0., 0.]])

    `x` has shape (..., N) and `bias` has shape (N,), both of the same floating-point dtype. `approximate`
    is "none" for the exact GELU, x·Φ(x), or "tanh" for its approximation. Raises `KernelError` for anything
    else.
    """
    _check(x, bias, approximate)
    if runs_as_kernel("bias_gelu", x):
        from course_lib.kernels.triton.bias_activation import activate

        return activate(x, bias, _FORMULAS[approximate])
    if bodies := cpu_bodies(x):
        return bodies.activate(x, bias, _FORMULAS[approximate])
    return formula(x, bias, approximate)


@torch.library.custom_op("course_lib::bias_gelu_backward", mutates_args=())
def bias_gelu_backward(
    grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, approximate: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x, contiguous, and of the bias."""
    if runs_as_kernel("bias_gelu", x):
        from course_lib.kernels.triton.bias_activation import activation_gradients

        return activation_gradients(grad, x, bias, _FORMULAS[approximate])
    if bodies := cpu_bodies(x, grad):
        return bodies.activation_gradients(grad, x, bias, _FORMULAS[approximate])
    grad_x, grad_bias = gradients(grad, x, bias, approximate)
    return grad_x.contiguous(), grad_bias


def formula(x: torch.Tensor, bias: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Return what the operator returns, by operators of PyTorch."""
    return F.gelu(x + bias, approximate=approximate)


def gradients(
    grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, approximate: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the results of the backward operator, by differentiable operators of PyTorch."""
    # The sum is recomputed and not saved, since reading x again is cheaper than keeping N elements alive.
    grad_x = torch.ops.aten.gelu_backward(grad, x + bias, approximate=approximate)
    return grad_x, sum_to_bias(grad_x)


def _check(x: torch.Tensor, bias: torch.Tensor, approximate: str = "none") -> None:
    check_bias("bias_gelu", x, bias)
    if approximate not in ("none", "tanh"):
        raise KernelError(f'bias_gelu got approximate={approximate!r}; it expects "none" or "tanh".')


register_bias_operator("bias_gelu", bias_gelu, bias_gelu_backward, formula, gradients, _check)
