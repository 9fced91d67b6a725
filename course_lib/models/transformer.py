"""Define a BERT encoder, equal to Hugging Face's layer by layer: its sizes, attention, feed-forward part and layers.

Source of the architecture: Devlin et al., BERT (2018); for `norm_first`, Xiong et al., On Layer Normalization in the
Transformer Architecture (2020).
"""

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import ModelError


@dataclass(frozen=True)
class TransformerConfig:
    """Hold the sizes and options that decide what a transformer computes, apart from its weights.

    The defaults make a model that trains on one CPU core; BERT-base is `TransformerConfig(768, 12, 3072, 12, 30522,
    512)`.
    """

    hidden_size: int = 128
    num_heads: int = 4
    intermediate_size: int = 512  # width of the feed-forward part
    num_layers: int = 2
    vocab_size: int = 1024
    max_positions: int = 128  # the longest sequence
    dropout: float = 0.1  # probability, at every place where BERT has dropout
    norm_first: bool = False  # LayerNorm before attention and feed-forward (as in GPT-2) instead of after (as in BERT)
    layer_norm_eps: float = 1e-12
    num_segments: int = 2  # how many sentences BERT tells apart in one input

    def __post_init__(self) -> None:
        """Raise `ModelError` for impossible sizes."""
        for size in fields(self):
            if size.type in (int, "int") and getattr(self, size.name) < 1:
                raise ModelError(f"TransformerConfig got {size.name}={getattr(self, size.name)}; it expects 1 or more.")
        if self.hidden_size % self.num_heads:
            raise ModelError(
                f"TransformerConfig got hidden_size={self.hidden_size} and num_heads={self.num_heads}; "
                "each head takes an equal part, so choose a hidden size that is a multiple of the number of heads."
            )
        if not 0 <= self.dropout < 1:
            raise ModelError(f"TransformerConfig got dropout={self.dropout}; it expects a probability below 1.")

    @property
    def head_size(self) -> int:
        """Return the width of one attention head."""
        return self.hidden_size // self.num_heads


def attention_probabilities(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None = None, head_size: int | None = None
) -> torch.Tensor:
    """Return softmax(query · keyᵀ / √head_size + mask), of shape (..., queries, keys).

    `query` has shape (..., queries, head_size) and `key` (..., keys, head_size). `mask` is added to the scores: it is 0
    for keys that a query may attend to and -inf for others. It must broadcast to (..., queries, keys). Pass `head_size`
    as a number if the function is captured, because the size of a traced tensor is not a number.
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
    """Compute multi-head self-attention, without the projection that follows it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.head_size = config.head_size  # an attribute, since a size read from a traced tensor is a proxy
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return the concatenated results of the heads: (batch, sequence, hidden) in and out.

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


class Projection(nn.Module):
    """Project back to the hidden size, apply dropout, and add the residual."""

    def __init__(self, config: TransformerConfig, in_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return dropout(dense(hidden)) + residual, of the shape of `residual`."""
        return self.dropout(self.dense(hidden)) + residual


class FeedForward(nn.Module):
    """Apply two linear layers with GELU between them to each position."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.projection = Projection(config, config.intermediate_size)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the result of the two layers plus `residual`: (batch, sequence, hidden) in and out."""
        intermediate = F.gelu(self.dense(hidden))  # (batch, sequence, intermediate)
        return self.projection(intermediate, residual)


class TransformerLayer(nn.Module):
    """Apply attention and feed-forward part, each with its residual and its LayerNorm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.attention = SelfAttention(config)
        self.projection = Projection(config, config.hidden_size)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return the new hidden states: (batch, sequence, hidden) in and out; for `mask` see `SelfAttention`."""
        if self.norm_first:
            hidden = self.projection(self.attention(self.attention_norm(hidden), mask), hidden)
            return self.feed_forward(self.feed_forward_norm(hidden), hidden)
        hidden = self.attention_norm(self.projection(self.attention(hidden, mask), hidden))
        return self.feed_forward_norm(self.feed_forward(hidden, hidden))


class TransformerEncoder(nn.Module):
    """Apply token and position embeddings, then a stack of layers."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_positions, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)  # first in BERT, last if norm_first
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_layers))
        self.norm_first = config.norm_first

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return hidden states (batch, sequence, hidden) for token numbers (batch, sequence).

        `mask` is added to the attention scores of each layer: 0 for keys that a query may attend to, -inf for others.
        It broadcasts to (batch, heads, sequence, sequence). Hugging Face's mask of 1 and 0 does not fit here;
        `padding_mask` of `course_lib.models.bert` makes this mask from it.
        """
        # Counting ones gives 0, 1, 2, … for any length; torch.arange would need the length as a number while tracing.
        order = torch.cumsum(torch.ones_like(tokens), dim=1) - 1
        hidden = self.tokens(tokens) + self.positions(order)
        if not self.norm_first:
            hidden = self.norm(hidden)
        hidden = self.dropout(hidden)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.norm(hidden) if self.norm_first else hidden
