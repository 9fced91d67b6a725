"""Fused operators that draw random numbers, as modules: they follow `train()` and `eval()` as nn.Dropout does."""

import torch
from torch import nn

import course_lib.kernels  # noqa: F401  # registers the operator


class BiasDropoutResidualLayerNorm(nn.Module):
    """Calls `course_lib::bias_dropout_residual_layer_norm` with the training flag of the module.

    It has no parameters: those stay where the program has them, and are given with each call.
    """

    def __init__(self, p: float, eps: float) -> None:
        super().__init__()
        self.p = p
        self.eps = eps

    def forward(
        self,
        x: torch.Tensor,
        bias: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        layer_norm_bias: torch.Tensor,
    ) -> torch.Tensor:
        """Return `layer_norm(residual + dropout(x + bias))`, of the shape of `x`."""
        result: torch.Tensor = torch.ops.course_lib.bias_dropout_residual_layer_norm(
            x, bias, residual, weight, layer_norm_bias, self.p, self.training, self.eps
        )
        return result

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"p={self.p}, eps={self.eps}"
