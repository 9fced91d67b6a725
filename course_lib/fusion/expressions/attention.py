"""Attention as one module without parameters, which the pass `sdpa` inserts into a graph."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.kernels.formula_derivatives import is_transformed


class Attention(nn.Module):
    """Attention by PyTorch's operator; in training with dropout by separate operators, so that dropout is the same.

    The operator has only a first derivative, and none in forward mode. Under `torch.func` and in forward mode the
    separate operators run, and they give the second derivative.
    """

    def __init__(self, scale: float, dropout: float, fill: float | None = None, keeps: bool = False) -> None:
        """Take the factor of the scores, and what happens to them at the mask.

        Without `fill`, the mask is added to the scores. With it, the mask is boolean and the scores become `fill` where
        it is true, or with `keeps` where it is false.
        """
        super().__init__()
        self.scale = scale
        self.dropout = dropout
        self.fill = fill
        self.keeps = keeps

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return softmax(query · keyᵀ · scale + mask) · value: (..., queries, width of value), contiguous.

        `query`, `key` and `value` have the shape (batch, heads, rows, columns) or (batch, rows, columns).
        """
        if self.training and self.dropout > 0:
            return self.separately(query, key, value, mask)
        if torch.compiler.is_compiling():  # a compiler can look into none of the questions below
            return self.fused(query, key, value, mask)
        given = [one for one in (query, key, value, mask) if one is not None]
        if any(map(is_transformed, given)):
            return self.separately(query, key, value, mask)
        if torch.is_grad_enabled() and any(one.requires_grad for one in given):
            result: Tensor = _TwiceDifferentiable.apply(self, query, key, value, mask)
            return result
        return self.fused(query, key, value, mask)

    def fused(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Return the result of PyTorch's operator, which takes four dimensions on its fast path."""
        if mask is not None:
            if self.fill is not None and not self.keeps:
                mask = ~mask  # the operator takes what may be seen
            mask = mask[(None,) * (query.ndim - mask.ndim)]  # as many dimensions as the scores
            mask = mask.expand(*mask.shape[:-2], query.shape[-2], key.shape[-2])
        if query.ndim == 3:
            query, key, value = (one.unsqueeze(1) for one in (query, key, value))  # (batch, 1, rows, columns)
            mask = None if mask is None else mask.unsqueeze(1)
            return self._called(query, key, value, mask).squeeze(1)
        return self._called(query, key, value, mask)

    def separately(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Return the same by separate operators, with dropout in training."""
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale  # (..., queries, keys)
        if mask is not None and self.fill is not None:
            scores = scores.masked_fill(~mask if self.keeps else mask, self.fill)
        elif mask is not None:
            scores = scores + mask
        return torch.matmul(F.dropout(torch.softmax(scores, dim=-1), self.dropout, self.training), value)

    def _called(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=self.scale)
        return result.contiguous()  # like the matrix product; the operator keeps the layout of its operands

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        fill = "" if self.fill is None else f", fill={self.fill}"
        return f"scale={self.scale:.4g}, dropout={self.dropout}{fill}"


class _TwiceDifferentiable(torch.autograd.Function):
    """Give PyTorch's operator the second derivative that it lacks, by separate operators in the backward pass."""

    @staticmethod
    def forward(ctx: Any, module: Attention, *tensors: Tensor | None) -> Tensor:
        ctx.module = module
        with torch.enable_grad():
            ctx.own = [None if one is None else one.detach().requires_grad_(one.requires_grad) for one in tensors]
            ctx.result = module.fused(*ctx.own)
        ctx.save_for_backward(*tensors)
        return ctx.result.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        second = torch.is_grad_enabled()  # the gradient is to be differentiated again
        tensors = ctx.saved_tensors if second else ctx.own
        result = ctx.module.separately(*tensors) if second else ctx.result
        wanted = [one for one in tensors if one is not None and one.requires_grad]
        found = iter(torch.autograd.grad(result, wanted, grads, retain_graph=True, create_graph=second))
        return None, *(next(found) if one is not None and one.requires_grad else None for one in tensors)
