"""The base class of the passes that fold a BatchNorm into the layer before or after it.

In evaluation mode BatchNorm maps y to (y − mean) / √(variance + eps) · scale + shift, with fixed numbers for each
channel. That is y · factor + offset, with factor = scale / √(variance + eps) and offset = shift − mean · factor.

- A layer y = W x + b before BatchNorm becomes a layer with the weight W · factor, by rows, and the bias b · factor +
  offset.
- A layer z = W y + b after BatchNorm becomes a layer with the weight W · factor, by columns, and the bias W · offset +
  b.

The folded weights are computed from the two modules' own parameters each time the graph runs, so that old checkpoints
load, gradients reach every parameter, and other calls of the same layer do not change. This costs a few small launches,
which read the weights two or three times, and saves one read and one write of the activations. The pass refuses a
folding that does not move fewer bytes.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.guards import cost_on_fakes, objection_to_traffic
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import attribute_of, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import run_node

Tensor = torch.Tensor
_TENSORS = ("x", "weight", "bias", "mean", "variance", "scale", "shift")


class BatchNormFolding(FusionPass):
    """A pass that folds a BatchNorm into a layer; a subclass names the layer and gives the patterns.

    It runs only if requested by name, because its graph stays in evaluation mode after `train()`. The patterns call the
    operands `x`, `weight`, `bias`, `mean`, `variance`, `scale`, `shift`, `training`, `momentum` and `eps`.
    """

    by_default = False
    layer: ClassVar[Callable[..., Tensor]]
    arguments: ClassVar[tuple[str, ...]] = ()  # further operands that the layer takes
    dimensions: ClassVar[int]  # of the input of BatchNorm, with the channels second, and of the layer's weight

    def guard(self, match: Match) -> Objection | None:
        """Refuse a BatchNorm that trains or lacks statistics, weight or bias, and a folding that moves more bytes."""
        objection = _objection_to_mode(match) or self._objection_to_tensors(match)
        if objection is not None:
            return objection
        mode = match.anchor.meta["val"].fake_mode
        operands = {name: _value(match, operand) for name, operand in match.operands.items()}
        before = cost_on_fakes(lambda: [run_node(node, {}) for node in match.nodes], mode)
        after = cost_on_fakes(lambda: self.replacement(match)(**operands), mode)
        return objection_to_traffic(before, after, "the folded weights are computed on each run")

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the layer with folded parameters."""
        fold = _folded_after if _norm(match) is match.anchor else _folded_before
        shape = (-1, *[1] * (self.dimensions - 1))

        def folded_layer(*, x: Tensor, weight: Tensor, bias: Tensor | None, **others: Any) -> Tensor:
            mean, variance, scale, shift, eps = (others[name] for name in (*_TENSORS[3:], "eps"))
            factor = scale * torch.rsqrt(variance + eps)
            new = fold(weight, bias, mean, factor, shift, shape)
            return self.layer(x, *new, **{name: others[name] for name in self.arguments})

        return folded_layer

    def _objection_to_tensors(self, match: Match) -> Objection | None:
        operands = tensor_operands(match, *(name for name in _TENSORS if match[name] is not None))
        if isinstance(operands, Objection):
            return operands
        norm = _norm(match)
        normed = norm.meta.get("val")
        if not isinstance(normed, FakeTensor) or not isinstance(match.anchor.meta.get("val"), FakeTensor):
            return Objection("shape unknown", f"the shape of {norm} is not known")
        channels = operands["weight"].shape[:1] if norm is match.anchor else operands["weight"].shape[1:]
        if normed.ndim != self.dimensions or (*channels,) != (normed.shape[1],):
            reason = f"{norm} has shape {tuple(normed.shape)}"
            return Objection("shape", f"{reason}; its channels must be its second dimension of {self.dimensions}")
        return one_dtype(operands)


def _folded_after(
    weight: Tensor, bias: Tensor | None, mean: Tensor, factor: Tensor, shift: Tensor, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a layer that BatchNorm follows; the weight's first dimension are the channels."""
    offset = -mean if bias is None else bias - mean
    return weight * factor.reshape(shape), offset * factor + shift


def _folded_before(
    weight: Tensor, bias: Tensor | None, mean: Tensor, factor: Tensor, shift: Tensor, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a linear layer that follows BatchNorm; the weight's columns are the channels."""
    offset = torch.mv(weight, shift - mean * factor)
    return weight * factor, offset if bias is None else offset + bias


def _norm(match: Match) -> fx.Node:
    return next(call.node for call in match.calls if call.operator.name == "batch_norm")


def _value(match: Match, operand: object) -> object:
    if isinstance(operand, ModuleAttribute):
        return attribute_of(match, operand)
    return operand.meta["val"] if isinstance(operand, fx.Node) else operand


def _objection_to_mode(match: Match) -> Objection | None:
    norm, training = _norm(match), match["training"]
    if isinstance(training, ModuleAttribute):
        training = attribute_of(match, training)
    if training is not False:
        return Objection("training", f"{norm} normalises by the statistics of the batch")
    missing = [name for name in ("mean", "variance", "scale", "shift") if match[name] is None]
    if missing:
        return Objection("statistics", f"{norm} has no {' and no '.join(missing)}")
    if type(match["eps"]) not in (int, float):
        return Objection("argument", f"{norm} takes eps from {match['eps']!r}, unknown until it runs")
    return None
