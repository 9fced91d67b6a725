"""The operator `course_lib::bias_gelu`: add a bias over the last dimension, then apply GELU.

The eager body computes what the two separate PyTorch operators compute, in the same order, so fusing onto
this operator never changes a value. What a GPU kernel would gain is the intermediate `x + bias`, which need
not be written to memory and read again: N elements read and N written, against 2N and 2N.
"""

import torch
import torch.nn.functional as F

from course_lib.errors import KernelError
from course_lib.kernels.batching import register_vmap
from course_lib.kernels.bias_operand import check_bias, sum_to_bias
from course_lib.kernels.mixed_precision import register_autocast


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
    return F.gelu(x + bias, approximate=approximate)


def _check(x: torch.Tensor, bias: torch.Tensor, approximate: str) -> None:
    check_bias("bias_gelu", x, bias)
    if approximate not in ("none", "tanh"):
        raise KernelError(f'bias_gelu got approximate={approximate!r}; it expects "none" or "tanh".')


def _fake(x: torch.Tensor, bias: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    _check(x, bias, approximate)
    return torch.empty_like(x + bias)  # of the sum, because the sum decides the strides


def _setup_context(
    ctx: torch.autograd.function.FunctionCtx,
    inputs: tuple[torch.Tensor, torch.Tensor, str],
    output: torch.Tensor,
) -> None:
    x, bias, approximate = inputs
    ctx.save_for_backward(x, bias)
    ctx.approximate = approximate  # type: ignore[attr-defined]  # contexts carry what the backward pass needs


def _backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
    x, bias = ctx.saved_tensors  # type: ignore[attr-defined]  # set by save_for_backward
    # The sum is computed again instead of saved: reading x once more is cheaper than keeping N elements
    # alive.
    grad_sum = torch.ops.aten.gelu_backward(grad, x + bias, approximate=ctx.approximate)  # type: ignore[attr-defined]
    return grad_sum, sum_to_bias(grad_sum), None


bias_gelu.register_fake(_fake)
bias_gelu.register_autograd(_backward, setup_context=_setup_context)
register_vmap(bias_gelu, rows=(0,))
register_autocast("bias_gelu", rows=(0, 1), normalises=False)
