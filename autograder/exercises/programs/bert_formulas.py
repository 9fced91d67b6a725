"""Attention and BERT's layer as formulas on the host's weights: the expected results of the exercises of notebook 01.

The formulas take weights by name, so that one formula serves every precision. Options give known wrong versions.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

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
    scale: str = "head size",
    last: bool = True,
    roles: tuple[str, str, str] = ("query", "key", "value"),
    one_table: bool = False,
    masks: str = "as given",
) -> Formula:
    """Return attention on (batch, sequence, hidden) with these weights; the options give the wrong versions.

    The scores are divided by the root of `scale`, with `one_table` over all heads at once.
    """

    def linear(layer: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, state[f"{layer}.weight"].to(x.dtype), state[f"{layer}.bias"].to(x.dtype))

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        query, key, value = (cut(linear(role, hidden), 1 if one_table else heads) for role in roles)
        mask = {"as given": mask, "ignored": None, "inverted": None if mask is None else ~mask}[masks]
        size = query.shape[-1]
        divisor = {"head size": size, "hidden size": hidden.shape[-1], "nothing": 1, "head size squared": size**2}
        joined = join(F.scaled_dot_product_attention(query, key, value, mask, scale=divisor[scale] ** -0.5))
        return linear("output", joined) if last else joined

    return formula


def linear(own: State, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return the linear map of that name."""
    return F.linear(x, own[f"{name}.weight"], own[f"{name}.bias"])


BOTH = ("attention", "feed_forward")


def bert_layer(
    own: State,
    heads: int,
    *,
    norm_first: bool = False,
    added: Collection[str] = BOTH,
    from_norm: Collection[str] = (),
    norms: tuple[str, str] = BOTH,
    activation: Callable[[torch.Tensor], torch.Tensor] = F.gelu,
    eps: float = 1e-12,
    **options: Any,
) -> Formula:
    """Return one layer on (batch, sequence, hidden); the options after `norm_first` give the wrong versions.

    `added` are the parts with a residual sum, `from_norm` those whose sum adds the normed input, `norms` the LayerNorm
    that each part uses. Further `options` are those of `attention`.
    """

    def norm(part: str, x: torch.Tensor) -> torch.Tensor:
        name = f"{dict(zip(BOTH, norms, strict=True))[part]}_norm"
        return F.layer_norm(x, x.shape[-1:], own[f"{name}.weight"], own[f"{name}.bias"], eps)

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        weights = {n.removeprefix("attention."): v for n, v in own.items() if n.startswith("attention.")}
        for part in BOTH:
            normed = norm(part, hidden) if norm_first else hidden
            if part == "attention":
                result = attention(weights, heads, **options)(normed, mask)
            else:
                result = linear(own, "down", activation(linear(own, "up", normed)))
            if part in added:
                result = result + (normed if part in from_norm else hidden)
            hidden = result if norm_first else norm(part, result)
        return hidden

    return formula
