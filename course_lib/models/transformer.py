"""A BERT encoder, small enough to read and equal to Hugging Face's layer by layer.

Source of the architecture: Devlin et al., BERT (2018); for `norm_first`, Xiong et al., On Layer Normalization in the
Transformer Architecture (2020).
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.attention import SelfAttention
from course_lib.models.config import TransformerConfig


class Projection(nn.Module):
    """A linear layer back to the hidden size, dropout, and the sum with what the part began from."""

    def __init__(self, config: TransformerConfig, in_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return dropout(dense(hidden)) + residual, of the shape of `residual`."""
        return self.dropout(self.dense(hidden)) + residual


class FeedForward(nn.Module):
    """Two linear layers with GELU between them, applied to each position by itself."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.projection = Projection(config, config.intermediate_size)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the result of the two layers plus `residual`: (batch, sequence, hidden) in and out."""
        intermediate = F.gelu(self.dense(hidden))  # (batch, sequence, intermediate)
        return self.projection(intermediate, residual)


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each with its residual sum and its LayerNorm."""

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
    """Token and position embeddings, then a stack of layers."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_positions, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)  # first in BERT, last if norm_first
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_layers))
        self.norm_first = config.norm_first

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return hidden states (batch, sequence, hidden) for token numbers (batch, sequence)."""
        # Counting ones gives 0, 1, 2, … for any length; torch.arange would need the length as a number while tracing.
        order = torch.cumsum(torch.ones_like(tokens), dim=1) - 1
        hidden = self.tokens(tokens) + self.positions(order)
        if not self.norm_first:
            hidden = self.norm(hidden)
        hidden = self.dropout(hidden)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.norm(hidden) if self.norm_first else hidden
