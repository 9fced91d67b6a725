"""Modules without parameters that passes insert into a graph: constants, and fused operators with dropout.

Those with dropout follow `train()` and `eval()` as `nn.Dropout` does.
"""

import torch
import torch.nn.functional as F
from torch import nn

import course_lib.kernels  # noqa: F401  # registers the operator


class Constant(nn.Module):
    """Gives the same tensor in each run; it is no buffer, so `to()` leaves it alone and no checkpoint holds it.

    The calls that it replaces did the same: `torch.arange(8)` gives int64 on the CPU, wherever the model is.
    """

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self._value = (value,)  # in a tuple, because nn.Module would make a tensor an attribute that torch.fx registers

    def forward(self) -> torch.Tensor:
        """Return the tensor itself, which no caller may change."""
        return self._value[0]

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{str(self._value[0].dtype).removeprefix('torch.')}{list(self._value[0].shape)}"


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
    """Attention by PyTorch's operator; written out while training with dropout, so that dropout stays the same."""

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
