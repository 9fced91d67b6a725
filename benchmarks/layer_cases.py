"""A whole BERT layer, computed in four ways from the same weights.

- `eager`: `course_lib.models.TransformerLayer`, attention written out;
- `compile`: the same under `torch.compile`;
- `peer`: the way of Megatron-LM's `fusions` folder: bias + GELU, and bias + dropout + residual, as formulas compiled
  one by one, with attention by PyTorch's operator and LayerNorm left to PyTorch's own kernel;
- `kernel`: what `course_lib.fusion.fuse` makes of the eager layer, attention included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.kernel_cases import Program, bias_dropout_add, gelu_by_hand
from course_lib.capture import capture
from course_lib.fusion import PASSES, fuse
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.models.transformer import SelfAttention

Layer = Callable[[torch.Tensor], torch.Tensor]


def build_layer(config: TransformerConfig, device: str, dtype: torch.dtype, *, training: bool) -> TransformerLayer:
    """Return the layer that all ways share, with weights that are the same each time."""
    torch.manual_seed(0)
    return TransformerLayer(config).to(device, dtype).train(training)


def programs(
    layer: TransformerLayer, x: torch.Tensor, compiler: Callable[[Program], Program]
) -> Iterator[tuple[str, Callable[[], Layer]]]:
    """Yield the name of each way, and how to make it; `compiler` is `torch.compile` or so."""
    yield "eager", lambda: layer
    yield "compile", lambda: compiler(layer)
    yield "peer", lambda: PeerLayer(layer, compiler)
    yield "kernel", lambda: fused(layer, x)


def fused(layer: TransformerLayer, x: torch.Tensor) -> nn.Module:
    """Return the layer after all passes that run by default, and the one for attention."""
    names = [name for name, cls in PASSES.items() if cls.by_default or name == "sdpa"]
    captured = capture(layer, concrete_args={"mask": None})
    return fuse(captured, (x,), names).graph_module.train(layer.training)


class PeerLayer(nn.Module):
    """The layer as Megatron-LM computes it, with the weights of `layer`; GELU by the tanh formula, as there."""

    def __init__(self, layer: TransformerLayer, compiler: Callable[[Program], Program]) -> None:
        super().__init__()
        self.layer = layer
        self._gelu, self._add = gelu_by_hand(compiler), compiler(bias_dropout_add)
        self.train(layer.training)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the new hidden states: (batch, sequence, hidden) in and out."""
        layer, feed_forward = self.layer, self.layer.feed_forward
        context = self._project(layer.projection.dense, _attention(layer.attention, hidden), hidden)
        hidden = layer.attention_norm(context)
        dense = feed_forward.dense
        inner = F.linear(hidden, dense.weight).flatten(0, 1)  # (batch · sequence, intermediate), as the formula sums
        inner = self._gelu(inner, dense.bias).view(*hidden.shape[:2], -1)
        result: torch.Tensor = layer.feed_forward_norm(self._project(feed_forward.projection.dense, inner, hidden))
        return result

    def _project(self, dense: nn.Linear, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        p = self.layer.projection.dropout.p if self.training else 0.0
        return self._add(F.linear(x, dense.weight), dense.bias, residual, p)


def _attention(attention: SelfAttention, hidden: torch.Tensor) -> torch.Tensor:
    query, key, value = (
        part(hidden).unflatten(-1, (attention.num_heads, attention.head_size)).transpose(1, 2)
        for part in (attention.query, attention.key, attention.value)
    )  # each (batch, heads, sequence, head size)
    p = attention.dropout.p if attention.training else 0.0
    return F.scaled_dot_product_attention(query, key, value, dropout_p=p).transpose(1, 2).flatten(2)
