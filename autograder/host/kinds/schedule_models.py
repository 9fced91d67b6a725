"""The models that schedules are asked for: one encoder whose names, order and spellings the arguments choose.

Where no names are given they are those of `course_lib.models`, which the notebook works with. The text of this file is
sent to the worker, which builds the model from it and gets the host's weights. So it imports nothing but PyTorch.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn


class Named(nn.Module):
    """A module whose parts have the names that a mapping gives to ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def add(self, name: str, part: nn.Module) -> None:
        """Add a part."""
        self.add_module(self.names.get(name, name), part)

    def part(self, name: str) -> nn.Module:
        """Return the part that was added as `name`."""
        return self.get_submodule(self.names.get(name, name))


class SelfAttention(Named):
    """Multi-head attention of a sequence to itself, operator by operator; the mask is added to the scores."""

    def __init__(
        self, width: int, inside: int, heads: int, names: Mapping[str, str], dropout: float, tied: bool
    ) -> None:
        super().__init__(names)
        self.num_heads, self.head_size = heads, inside // heads
        for name in ("query", "key", "value"):
            self.add(name, nn.Linear(width, inside))
        if tied:
            self.part("key").weight = self.part("query").weight
        self.add("dropout", nn.Dropout(dropout))

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) to (batch, sequence, inside).

        The mask broadcasts to (batch, heads, sequence, sequence).
        """
        query, key, value = (self._heads_of(name, hidden) for name in ("query", "key", "value"))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        probabilities = self.part("dropout")(torch.softmax(scores + mask, dim=-1))
        return torch.matmul(probabilities, value).transpose(1, 2).flatten(2)

    def _heads_of(self, name: str, hidden: torch.Tensor) -> torch.Tensor:
        part: torch.Tensor = self.part(name)(hidden)
        return part.unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)


class Projection(Named):
    """A linear layer, dropout, and the sum with what the block began from."""

    def __init__(self, inside: int, width: int, names: Mapping[str, str], dropout: float, residual_first: bool) -> None:
        super().__init__(names)
        self.residual_first = residual_first
        self.add("dense", nn.Linear(inside, width))
        self.add("dropout", nn.Dropout(dropout))

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, inside) and (batch, sequence, width) to (batch, sequence, width)."""
        dropped: torch.Tensor = self.part("dropout")(self.part("dense")(hidden))
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


class FeedForward(Named):
    """A linear layer, an activation, and the projection back."""

    def __init__(
        self, width: int, inside: int, names: Mapping[str, str], activation: str, dropout: float, residual_first: bool
    ) -> None:
        super().__init__(names)
        self.kind = activation
        self.add("dense", nn.Linear(width, inside))
        if activation in ACTIVATIONS:
            self.add("activation", ACTIVATIONS[activation]())
        self.add("projection", Projection(inside, width, names, dropout, residual_first))

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) twice to (batch, sequence, width)."""
        inner = self.part("dense")(hidden)
        inner = self.part("activation")(inner) if self.kind in ACTIVATIONS else FUNCTIONS[self.kind](inner)
        result: torch.Tensor = self.part("projection")(inner, residual)
        return result


class TransformerLayer(Named):
    """Attention and feed-forward, each with its residual sum and its LayerNorm.

    Before each of the two, and behind them, stand so many modules that return their input as `idle` says.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        names: Mapping[str, str],
        activation: str,
        dropout: float,
        norm_first: bool,
        residual_first: bool | tuple[bool, bool],
        branches: bool,
        tied: bool,
        eps: float,
        inside: int | None,
        idle: Sequence[int],
    ) -> None:
        super().__init__(names)
        self.norm_first, self.branches, self.idle = norm_first, branches, idle
        first = residual_first if isinstance(residual_first, tuple) else (residual_first, residual_first)
        self.add("attention", SelfAttention(width, inside or width, heads, names, dropout, tied))
        self.add("projection", Projection(inside or width, width, names, dropout, first[0]))
        self.add("attention_norm", nn.LayerNorm(width, eps=eps))
        self.add("feed_forward", FeedForward(width, inside or 2 * width, names, activation, dropout, first[1]))
        self.add("feed_forward_norm", nn.LayerNorm(width, eps=eps))
        for place, count in enumerate(idle):
            self.add(f"idle_{place}", nn.Sequential(*(nn.Identity() for _ in range(count))))

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, width) to the same."""
        attention, projection, forward = map(self.part, ("attention", "projection", "feed_forward"))
        attention_norm, feed_forward_norm = map(self.part, ("attention_norm", "feed_forward_norm"))
        if self.branches and bool(hidden.abs().max() > 1e6):  # torch.fx stops here
            hidden = torch.zeros_like(hidden)
        hidden = self._idle(0, hidden)
        if self.norm_first:
            hidden = self._idle(1, projection(attention(attention_norm(hidden), mask), hidden))
            return self._idle(2, forward(feed_forward_norm(hidden), hidden))
        hidden = self._idle(1, attention_norm(projection(attention(hidden, mask), hidden)))
        return self._idle(2, feed_forward_norm(forward(hidden, hidden)))

    def _idle(self, place: int, hidden: torch.Tensor) -> torch.Tensor:
        return self.part(f"idle_{place}")(hidden) if self.idle else hidden


class Encoder(Named):
    """A stack of layers: (batch, sequence, width) and a mask to (batch, sequence, width).

    `inside` is the width within both blocks of a layer, by default that of the encoder, and twice that after the first
    linear layer of a feed-forward block. `residual_first` holds for both blocks, or names one value for attention and
    one for feed-forward. `idle` counts modules that return their input: before each block of a layer, and behind them.
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
        residual_first: bool | tuple[bool, bool] = False,
        branches: bool = False,
        tied: bool = False,
        eps: float = 1e-12,
        inside: int | None = None,
        idle: Sequence[int] = (),
    ) -> None:
        super().__init__(names or {})
        options = (activation, dropout, norm_first, residual_first, branches, tied, eps, inside, idle)
        stack = nn.ModuleList(TransformerLayer(width, heads, self.names, *options) for _ in range(layers))
        self.add("layers", stack)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Apply the layers in turn."""
        for layer in self.part("layers").children():
            hidden = layer(hidden, mask)
        return hidden
