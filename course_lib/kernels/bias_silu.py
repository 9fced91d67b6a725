"""The operator `course_lib::bias_silu`: add a bias over the last dimension, then apply SiLU.

The eager body computes what the two separate PyTorch operators compute, in the same order, so fusing onto
this operator never changes a value. What a GPU kernel would gain is the intermediate `x + bias`, which need
not be written to memory and read again: N elements read and N written, against 2N and 2N.
"""

import torch
import torch.nn.functional as F

from course_lib.kernels.batching import register_vmap
from course_lib.kernels.bias_operand import check_bias, sum_to_bias
from course_lib.kernels.mixed_precision import register_autocast


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
    return F.silu(x + bias)


def _fake(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    check_bias("bias_silu", x, bias)
    return torch.empty_like(x + bias)  # of the sum, because the sum decides the strides


def _setup_context(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor
) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x, bias = ctx.saved_tensors  # type: ignore[attr-defined]  # set by save_for_backward
    # The sum is computed again instead of saved: reading x once more is cheaper than keeping N elements
    # alive.
    grad_sum = _silu_backward(grad, x + bias)
    return grad_sum, sum_to_bias(grad_sum)


def _silu_backward(grad: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Return grad · d silu(z)/dz; silu'(z) = σ(z) · (1 + z · (1 − σ(z)))."""
    if not torch.is_grad_enabled():
        return torch.ops.aten.silu_backward(grad, z)
    # Grad mode is on when someone differentiates the gradient. PyTorch's own operator has no derivative;
    # the formula has.
    sigma = torch.sigmoid(z)
    return grad * sigma * (1 + z * (1 - sigma))


bias_silu.register_fake(_fake)
bias_silu.register_autograd(_backward, setup_context=_setup_context)
register_vmap(bias_silu, rows=(0,))
register_autocast("bias_silu", rows=(0, 1), normalises=False)
