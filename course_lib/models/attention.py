"""Attention, written out operator by operator so that a capture shows each of them."""

import math

import torch
from torch import nn

from course_lib.models.config import TransformerConfig


def attention_probabilities(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None = None, head_size: int | None = None
) -> torch.Tensor:
    """Return softmax(query · keyᵀ / √head_size + mask), of shape (..., queries, keys): where each query looks.

    `query` has shape (..., queries, head_size) and `key` (..., keys, head_size). `mask` is added to the scores, so it
    is 0 where a query may look and -inf where it may not; it must broadcast to (..., queries, keys). Give `head_size`
    as a number where the function is captured: the size of a traced tensor is no number yet.
    """
    scale = math.sqrt(query.shape[-1] if head_size is None else head_size)
    scores = torch.matmul(query, key.transpose(-1, -2)) / scale  # (..., queries, keys)
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, dim=-1)


def scaled_dot_product(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    head_size: int | None = None,
) -> torch.Tensor:
    """Return `attention_probabilities` · value: (..., queries, width) for a value of shape (..., keys, width).

    Source: Vaswani et al., Attention Is All You Need (2017), equation 1.
    """
    return torch.matmul(attention_probabilities(query, key, mask, head_size), value)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself, without the projection that follows it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.head_size = config.head_size  # an attribute, because a size read from a traced tensor is no number
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return the heads' results side by side: (batch, sequence, hidden) in and out.

        `mask` is added to the scores and broadcasts to (batch, heads, sequence, sequence).
        """
        query = self._split_heads(self.query(hidden))
        key = self._split_heads(self.key(hidden))
        value = self._split_heads(self.value(hidden))
        probabilities = self.dropout(attention_probabilities(query, key, mask, self.head_size))
        context = torch.matmul(probabilities, value)
        return context.transpose(1, 2).flatten(2)  # (batch, sequence, hidden)

    def _split_heads(self, part: torch.Tensor) -> torch.Tensor:
        heads = part.unflatten(-1, (self.num_heads, self.head_size))
        return heads.transpose(1, 2)  # (batch, heads, sequence, head_size)
