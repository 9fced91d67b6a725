"""What every operator of the form `activation(x + bias)` expects of its two tensors."""

import torch

from course_lib.errors import KernelError


def check_bias(operator: str, x: torch.Tensor, bias: torch.Tensor) -> None:
    """Raise `KernelError` unless `bias` has one entry for each entry of the last dimension of `x`.

    A fused kernel reads `bias[column]` beside `x[row, column]`, so it supports this one way to broadcast,
    and one dtype for both.
    """
    if x.ndim == 0 or bias.ndim != 1 or bias.shape[0] != x.shape[-1]:
        raise KernelError(
            f"{operator} got x of shape {tuple(x.shape)} and bias of shape {tuple(bias.shape)}; "
            "it expects a bias of one dimension, as long as the last dimension of x. Add other biases with `+`."
        )
    if x.dtype != bias.dtype or not x.dtype.is_floating_point:
        raise KernelError(
            f"{operator} got x of {x.dtype} and bias of {bias.dtype}; "
            "it expects one floating-point dtype for both. Convert one of them with `.to(...)` first."
        )


def sum_to_bias(grad: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the bias: that of `x + bias`, summed over all dimensions but the last."""
    return grad.sum(dim=tuple(range(grad.ndim - 1))) if grad.ndim > 1 else grad.clone()
