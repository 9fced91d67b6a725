"""Fused computations with dropout, as modules: they follow `train()` and `eval()` as nn.Dropout does."""

import torch
import torch.nn.functional as F
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


class Attention(nn.Module):
    """Attention by PyTorch's operator; while training with dropout, written out, so that dropout is what it was."""

    def __init__(self, scale: float, dropout: float) -> None:
        super().__init__()
        self.scale = scale
        self.dropout = dropout

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return softmax(query · keyᵀ · scale + mask) · value: (batch, heads, queries, width of value), contiguous."""
        if self.training and self.dropout > 0:
            scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale  # (batch, heads, queries, keys)
            scores = scores if mask is None else scores + mask
            return torch.matmul(F.dropout(torch.softmax(scores, dim=-1), self.dropout), value)
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=self.scale)
        return result.contiguous()  # as the product is; the operator keeps the layout of its operands

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"scale={self.scale:.4g}, dropout={self.dropout}"
