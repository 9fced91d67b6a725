"""Attention and BERT's layer as formulas on the host's weights: the expected results of the exercises of notebook 01.

The formulas take weights by name, so that one formula serves every precision. Options give known wrong versions.
"""

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional as F

LAYERS = ("query", "key", "value", "output")
State = Mapping[str, torch.Tensor]
Formula = Callable[..., torch.Tensor]


def attention_shapes(hidden_size: int) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every parameter of attention."""
    return {
        f"{layer}.{part}": shape
        for layer in LAYERS
        for part, shape in (("weight", (hidden_size, hidden_size)), ("bias", (hidden_size,)))
    }


def split(part: torch.Tensor, heads: int) -> torch.Tensor:
    """Reshape (batch, sequence, hidden) to (batch, heads, sequence, head size)."""
    return part.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(context: torch.Tensor) -> torch.Tensor:
    """Reshape (batch, heads, sequence, head size) to (batch, sequence, hidden)."""
    return context.transpose(1, 2).flatten(2)


def attention(
    state: State,
    heads: int,
    *,
    cut: Callable[[torch.Tensor, int], torch.Tensor] = split,
    join: Callable[[torch.Tensor], torch.Tensor] = merge,
    scale: float | None = None,
    last: bool = True,
    roles: tuple[str, str, str] = ("query", "key", "value"),
) -> Formula:
    """Return attention on (batch, sequence, hidden) with these weights; the options give the wrong versions."""

    def linear(layer: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, state[f"{layer}.weight"].to(x.dtype), state[f"{layer}.bias"].to(x.dtype))

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        query, key, value = (cut(linear(role, hidden), heads) for role in roles)
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        joined = join(scores.softmax(-1) @ value)
        return linear("output", joined) if last else joined

    return formula


def linear(own: State, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return the linear map of that name."""
    return F.linear(x, own[f"{name}.weight"], own[f"{name}.bias"])


def bert_layer(
    own: State,
    heads: int,
    *,
    norm_first: bool = False,
    residual: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.add,
    activation: Callable[[torch.Tensor], torch.Tensor] = F.gelu,
    from_norm: bool = False,
    eps: float = 1e-12,
) -> Formula:
    """Return one layer on (batch, sequence, hidden); the options after `norm_first` give the wrong versions."""

    def norm(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], own[f"{name}.weight"], own[f"{name}.bias"], eps)

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        weights = {n.removeprefix("attention."): v for n, v in own.items() if n.startswith("attention.")}
        for name in ("attention_norm", "feed_forward_norm"):
            normed = norm(name, hidden) if norm_first else hidden
            if name == "attention_norm":
                part = attention(weights, heads)(normed, mask)
            else:
                part = linear(own, "down", activation(linear(own, "up", normed)))
            hidden = residual(part, normed if from_norm else hidden)
            hidden = hidden if norm_first else norm(name, hidden)
        return hidden

    return formula
