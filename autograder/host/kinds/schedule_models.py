"""The models that schedules are asked for: one encoder whose names, order and spellings the arguments choose.

Where no names are given they are those of `course_lib.models`, which the notebook works with. The text of this file is
sent to the worker, which builds the model from it and gets the host's weights. So it imports nothing but PyTorch.
"""

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself, operator by operator; the mask is added to the scores."""

    def __init__(
        self, width: int, inside: int, heads: int, names: Mapping[str, str], dropout: float, tied: bool
    ) -> None:
        super().__init__()
        self.names, self.num_heads, self.head_size = names, heads, inside // heads
        for name in ("query", "key", "value"):
            self.add_module(names.get(name, name), nn.Linear(width, inside))
        if tied:
            self.get_submodule(names.get("key", "key")).weight = self.get_submodule(names.get("query", "query")).weight
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) to (batch, sequence, inside).

        The mask broadcasts to (batch, heads, sequence, sequence).
        """
        query, key, value = (self._heads_of(name, hidden) for name in ("query", "key", "value"))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        probabilities = self.dropout(torch.softmax(scores + mask, dim=-1))
        return torch.matmul(probabilities, value).transpose(1, 2).flatten(2)

    def _heads_of(self, name: str, hidden: torch.Tensor) -> torch.Tensor:
        part = self.get_submodule(self.names.get(name, name))(hidden)
        return part.unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)


class Projection(nn.Module):
    """A linear layer, dropout, and the sum with what the block began from."""

    def __init__(self, inside: int, width: int, names: Mapping[str, str], dropout: float, residual_first: bool) -> None:
        super().__init__()
        self.names, self.residual_first = names, residual_first
        self.add_module(names.get("dense", "dense"), nn.Linear(inside, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, inside) and (batch, sequence, width) to (batch, sequence, width)."""
        dropped = self.dropout(self.get_submodule(self.names.get("dense", "dense"))(hidden))
        return residual + dropped if self.residual_first else dropped + residual


class FastGelu(nn.Module):
    """An activation in a class of its own, as libraries have them: only its name says what it computes."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map any shape to itself."""
        return hidden * 0.5 * (1.0 + torch.erf(hidden / math.sqrt(2.0)))


class Smooth(nn.Module):
    """GELU in a class whose name does not tell; a model may still call the module gelu."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map any shape to itself."""
        return hidden * (0.5 * torch.erf(hidden / math.sqrt(2.0)) + 0.5)


class FastRelu(nn.Module):
    """Another activation in a class of its own."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map any shape to itself."""
        return torch.clamp_min(hidden, 0.0)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu module": nn.GELU,
    "tanh module": lambda: nn.GELU(approximate="tanh"),
    "relu module": nn.ReLU,
    "own gelu": FastGelu,
    "gelu by name": Smooth,
    "own relu": FastRelu,
}


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": lambda x: F.gelu(x),
    "relu": lambda x: F.relu(x),
}


class FeedForward(nn.Module):
    """A linear layer, an activation, and the projection back."""

    def __init__(
        self, width: int, inside: int, names: Mapping[str, str], activation: str, dropout: float, residual_first: bool
    ) -> None:
        super().__init__()
        self.names, self.kind = names, activation
        self.add_module(names.get("dense", "dense"), nn.Linear(width, inside))
        if activation in ACTIVATIONS:
            self.add_module(names.get("activation", "activation"), ACTIVATIONS[activation]())
        self.projection = Projection(inside, width, names, dropout, residual_first)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) twice to (batch, sequence, width)."""
        inner = self.get_submodule(self.names.get("dense", "dense"))(hidden)
        if self.kind in ACTIVATIONS:
            inner = self.get_submodule(self.names.get("activation", "activation"))(inner)
        else:
            inner = FUNCTIONS[self.kind](inner)
        return self.projection(inner, residual)


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each with its residual sum and its LayerNorm."""

    def __init__(
        self,
        width: int,
        heads: int,
        names: Mapping[str, str],
        activation: str,
        dropout: float,
        norm_first: bool,
        residual_first: bool,
        branches: bool,
        tied: bool,
        eps: float,
        inside: int | None,
    ) -> None:
        super().__init__()
        self.names, self.norm_first, self.branches = names, norm_first, branches
        attention = SelfAttention(width, inside or width, heads, names, dropout, tied)
        self.add_module(names.get("attention", "attention"), attention)
        self.projection = Projection(inside or width, width, names, dropout, residual_first)
        self.add_module(names.get("attention_norm", "attention_norm"), nn.LayerNorm(width, eps=eps))
        forward = FeedForward(width, inside or 2 * width, names, activation, dropout, residual_first)
        self.add_module(names.get("feed_forward", "feed_forward"), forward)
        self.feed_forward_norm = nn.LayerNorm(width, eps=eps)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) to the same."""
        attention, norm, forward = (
            self.get_submodule(self.names.get(name, name)) for name in ("attention", "attention_norm", "feed_forward")
        )
        if self.branches and bool(hidden.abs().max() > 1e6):  # torch.fx stops here
            hidden = torch.zeros_like(hidden)
        if self.norm_first:
            hidden = self.projection(attention(norm(hidden), mask), hidden)
            return forward(self.feed_forward_norm(hidden), hidden)
        hidden = norm(self.projection(attention(hidden, mask), hidden))
        return self.feed_forward_norm(forward(hidden, hidden))


class Encoder(nn.Module):
    """A stack of layers: (batch, sequence, width) and a mask to (batch, sequence, width).

    `inside` is the width within both blocks of a layer, by default that of the encoder, and twice that after the first
    linear layer of a feed-forward block.
    """

    def __init__(
        self,
        layers: int = 1,
        width: int = 8,
        heads: int = 2,
        names: Mapping[str, str] | None = None,
        activation: str = "gelu",
        dropout: float = 0.0,
        norm_first: bool = False,
        residual_first: bool = False,
        branches: bool = False,
        tied: bool = False,
        eps: float = 1e-12,
        inside: int | None = None,
    ) -> None:
        super().__init__()
        options = (activation, dropout, norm_first, residual_first, branches, tied, eps, inside)
        names = names or {}
        self.stack = names.get("layers", "layers")
        self.add_module(
            self.stack, nn.ModuleList(TransformerLayer(width, heads, names, *options) for _ in range(layers))
        )

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Apply the layers in turn."""
        for layer in self.get_submodule(self.stack).children():
            hidden = layer(hidden, mask)
        return hidden
