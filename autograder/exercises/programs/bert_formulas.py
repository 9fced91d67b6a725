"""Attention and BERT's layer as formulas on the host's weights: the expected results of the exercises of notebook 01.

The formulas take weights by name, so that one formula serves every precision. Options give known wrong versions.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.models.transformer import SelfAttention, TransformerConfig

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


def attention(
    state: State,
    heads: int,
    *,
    cut: str = "by head",
    join: str = "by head",
    scale: str = "head size",
    last: bool = True,
    roles: tuple[str, str, str] = ("query", "key", "value"),
    one_table: bool = False,
    masks: str = "as given",
) -> Formula:
    """Return attention on (batch, sequence, hidden) with these weights; the options give the wrong versions.

    The library's layer cuts, attends and joins, which is not there for an answer, so this function is not an answer.
    The scores are divided by the root of `scale`, with `one_table` over all heads at once.
    """

    def linear(layer: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, state[f"{layer}.weight"].to(x.dtype), state[f"{layer}.bias"].to(x.dtype))

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        parts = [linear(role, hidden) for role in roles]
        count = 1 if one_table else heads
        mask = {"as given": mask, "ignored": None, "inverted": None if mask is None else ~mask}[masks]
        if mask is not None:
            mask = mask[:, :count].expand(len(hidden), count, hidden.shape[1], hidden.shape[1])
        size = hidden.shape[-1] // count
        divisor = {"head size": size, "hidden size": hidden.shape[-1], "nothing": 1, "head size squared": size**2}
        parts[0] = parts[0] * (size / divisor[scale]) ** 0.5 if scale != "head size" else parts[0]
        if cut == "at once":  # a head is a part of the sequence, and each is attended to as if it were alone
            parts = [part.reshape(len(part) * count, hidden.shape[1], size) for part in parts]
            joined = torch.cat(_attended(parts, 1, mask).unflatten(0, (-1, count)).unbind(1), -1)
        else:
            joined = _attended(parts, count, mask)
        if join == "at once":
            joined = torch.stack(joined.chunk(count, -1), 1).reshape(hidden.shape)
        return linear("output", joined) if last else joined

    return formula


def _attended(parts: Sequence[torch.Tensor], heads: int, mask: torch.Tensor | None) -> torch.Tensor:
    """Return the joined heads of query, key and value (batch, sequence, hidden), by the library's attention.

    Its linear maps take these three out of one tensor; mask (…, sequence, sequence) for each head, True = may attend.
    """
    size = parts[0].shape[-1]
    unit, nothing = torch.eye(3 * size, dtype=parts[0].dtype), torch.zeros(size, dtype=parts[0].dtype)
    state = {f"{role}.weight": rows for role, rows in zip(LAYERS, unit.split(size), strict=False)}
    state |= {f"{role}.bias": nothing for role in LAYERS[:3]}
    hidden = None
    if mask is not None:
        allowed = mask.reshape(len(parts[0]), heads, *mask.shape[-2:])
        hidden = torch.zeros(allowed.shape, dtype=unit.dtype).masked_fill(~allowed, -math.inf)
    with torch.device("meta"):  # the weights come with the call
        attend = SelfAttention(TransformerConfig(size, heads, dropout=0.0))
    found: torch.Tensor = torch.func.functional_call(attend, state, (torch.cat(list(parts), -1), hidden))
    return found


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
    that each part uses. Further `options` are those of `attention`. PyTorch's own layer puts the parts together, and
    attention is the library's, which is not there for an answer, so this function is not an answer.
    """
    weights = {n.removeprefix("attention."): v for n, v in own.items() if n.startswith("attention.")}
    renamed = {"linear1": "up", "linear2": "down", "norm1": f"{norms[0]}_norm", "norm2": f"{norms[1]}_norm"}
    state = {f"{new}.{part}": own[f"{old}.{part}"] for new, old in renamed.items() for part in ("weight", "bias")}

    def formula(hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        layer = _Layer(
            lambda x: attention(weights, heads, **options)(x, mask),
            (hidden.shape[-1], 1, len(own["up.bias"]), 0.0, activation, eps, True, norm_first, True, "meta"),
            added=added,
            from_norm=from_norm,
        )
        found: torch.Tensor = torch.func.functional_call(layer, state, (hidden,))
        return found

    return formula


class _Layer(nn.TransformerEncoderLayer):
    """PyTorch's layer with an attention of ours; what its parts return undoes sums that are to be wrong."""

    def __init__(self, attend: Formula, given: Sequence[Any], *, added: Collection[str], from_norm: Collection[str]):
        super().__init__(*given)  # in training mode, which takes no shortcut
        self._attend, self._added, self._from_norm = attend, added, from_norm
        for norm in (self.norm1, self.norm2):
            norm.register_forward_pre_hook(self._note)

    def _note(self, _: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        self._came = given[0]

    def _sa_block(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return self._summed_with("attention", x, self._attend(x))

    def _ff_block(self, x: torch.Tensor) -> torch.Tensor:
        return self._summed_with("feed_forward", x, super()._ff_block(x))

    def _summed_with(self, part: str, x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        """Return what gives the sum that is wanted, when PyTorch adds what came into the part."""
        came = self._came if self.norm_first else x
        if part not in self._added:
            return result - came
        return result + (x - came) if part in self._from_norm else result
