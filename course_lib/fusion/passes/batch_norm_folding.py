"""The base class of the passes that fold a BatchNorm into the layer before or after it.

In evaluation mode BatchNorm maps y to (y − mean) / √(variance + eps) · scale + shift, with fixed numbers for each
channel. That is y · factor + offset, with factor = scale / √(variance + eps) and offset = shift − mean · factor.

- A layer y = W x + b before BatchNorm becomes a layer with the weight W · factor, by rows, and the bias b · factor +
  offset.
- A layer z = W y + b after BatchNorm becomes a layer with the weight W · factor, by columns, and the bias W · offset +
  b.

The folded weights are computed from the two modules' own parameters each time the graph runs, so that old checkpoints
load, gradients reach every parameter, and other calls of the same layer do not change. This costs a few small launches,
which read the weights two or three times, and saves one read and one write of the activations: a convolution with a
bias and its BatchNorm are 2 launches now, and 8 launches with fewer bytes afterwards. The pass refuses a folding that
does not move fewer bytes.

For inference only, `ConvBatchNorm(once=True)` and `LinearBatchNorm(once=True)` fold while fusing: the graph holds the
folded weights as buffers, and 2 launches become 1. No gradient reaches the parameters of the program, and the modules
that were folded leave the state dict, so that a checkpoint of the program is refused instead of loaded in part.
"""

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.effects import effects_of, memory_of
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.guards import cost_on_fakes, objection_to_traffic
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import attribute_of, one_dtype, tensor_operands
from course_lib.fusion.result import Rejected
from course_lib.fusion.rules import Objection, place_of
from course_lib.fusion.storage import Writers, run_node
from course_lib.fusion.surgery import add_module

Tensor = torch.Tensor
_TENSORS = ("x", "weight", "bias", "mean", "variance", "scale", "shift")


class BatchNormFolding(FusionPass):
    """A pass that folds a BatchNorm into a layer; a subclass names the layer and gives the patterns.

    It runs only if requested by name, because its graph stays in evaluation mode after `train()`. The patterns call the
    operands `x`, `weight`, `bias`, `mean`, `variance`, `scale`, `shift`, `training`, `momentum` and `eps`.
    """

    by_default = False
    # Operator of the layer -> its function, and the dimensions of its weight. The input of BatchNorm has as many
    # dimensions, with the channels second.
    layers: ClassVar[Mapping[str, tuple[Callable[..., Tensor], int]]]
    arguments: ClassVar[tuple[str, ...]] = ()  # further operands that the layer takes

    def __init__(self, *, once: bool = False) -> None:
        """Fold in each run, or with `once` while fusing, for inference only."""
        super().__init__()
        self._once = once

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Fold each BatchNorm that may be folded; with `once`, drop the modules whose weights were folded."""
        before = _named(gm)
        num_matches, rejected = super().transform(gm)
        if self._once and num_matches:
            for node in gm.graph.find_nodes(op="get_attr"):
                if not node.users:
                    gm.graph.erase_node(node)
            after = _named(gm)
            _drop(gm, {path for path in before if not any(f"{one}.".startswith(f"{path}.") for one in after)})
        return num_matches, rejected

    def guard(self, match: Match) -> Objection | None:
        """Refuse a BatchNorm that trains or lacks statistics, weight or bias, and a folding that moves more bytes."""
        objection = _objection_to_mode(match) or self._objection_to_tensors(match)
        if objection is not None:
            return objection
        if self._once:
            return _objection_to_computed(match) or _objection_to_written(match)
        mode = match.anchor.meta["val"].fake_mode
        operands = {name: _value(match, operand) for name, operand in match.operands.items()}
        before = cost_on_fakes(lambda: [run_node(node, {}) for node in match.nodes], mode)
        after = cost_on_fakes(lambda: self.replacement(match)(**operands), mode)
        too_much = objection_to_traffic(before, after, "the folded weights are computed on each run")
        return None if too_much is None else Objection("each run", too_much.reason)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the layer with folded parameters."""
        if self._once:
            return self._layer_folded_once(match)
        folded, (layer, _) = self._folding(match), self._layer(match)

        def folded_layer(*, x: Tensor, **others: Any) -> Tensor:
            return layer(x, *folded(**others), **{name: others[name] for name in self.arguments})

        return folded_layer

    def _layer_folded_once(self, match: Match) -> Callable[..., object]:
        owner = match.anchor.graph.owning_module
        assert owner is not None, "a pass works on the graph of a GraphModule"
        values = {name: _held(match, operand) for name, operand in match.operands.items() if name != "x"}
        with torch.no_grad():
            weight, bias = self._folding(match)(**values)
        holder = nn.Module()
        holder.register_buffer("weight", weight)
        holder.register_buffer("bias", bias)
        path, (layer, _) = add_module(owner, "folded", holder), self._layer(match)

        def folded_layer(*, x: fx.Proxy, **others: Any) -> Tensor:
            graph = x.node.graph
            new = [fx.Proxy(graph.create_node("get_attr", f"{path}.{name}"), x.tracer) for name in ("weight", "bias")]
            return layer(x, *new, **{name: others[name] for name in self.arguments})

        return folded_layer

    def _layer(self, match: Match) -> tuple[Callable[..., Tensor], int]:
        return next(self.layers[call.operator.name] for call in match.calls if call.operator.name in self.layers)

    def _folding(self, match: Match) -> Callable[..., tuple[Tensor, Tensor]]:
        """Return the function that folds the parameters of a match."""
        fold = _folded_after if _norm(match) is match.anchor else _folded_before
        shape = (-1, *[1] * (self._layer(match)[1] - 1))

        def folded(*, weight: Tensor, bias: Tensor | None, **others: Any) -> tuple[Tensor, Tensor]:
            mean, variance, scale, shift, eps = (others[name] for name in (*_TENSORS[3:], "eps"))
            return fold(weight, bias, mean, scale * torch.rsqrt(variance + eps), shift, shape)

        return folded

    def _objection_to_tensors(self, match: Match) -> Objection | None:
        operands = tensor_operands(match, *(name for name in _TENSORS if match[name] is not None))
        if isinstance(operands, Objection):
            return operands
        norm = _norm(match)
        normed = norm.meta.get("val")
        if not isinstance(normed, FakeTensor) or not isinstance(match.anchor.meta.get("val"), FakeTensor):
            return Objection("shape unknown", f"the shape of {norm} is not known")
        channels = operands["weight"].shape[:1] if norm is match.anchor else operands["weight"].shape[1:]
        dimensions = self._layer(match)[1]
        if normed.ndim != dimensions or (*channels,) != (normed.shape[1],):
            reason = f"{norm} has shape {tuple(normed.shape)}"
            return Objection("shape", f"{reason}; its channels must be its second dimension of {dimensions}")
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


def _objection_to_computed(match: Match) -> Objection | None:
    """Refuse parameters that the program computes or takes as inputs: they are not known while fusing."""
    for name in _TENSORS[1:]:
        operand = match[name]
        if isinstance(operand, fx.Node) and operand.op != "get_attr":
            return Objection(
                "computed", f"{name} of {match.anchor} is {operand}, which is known only when the graph runs"
            )
    return None


def _objection_to_written(match: Match) -> Objection | None:
    """Refuse parameters whose memory any node changes, also through another tensor: the next run reads other values."""
    writers = Writers(match.writers)
    read = frozenset().union(*(effects_of(node).reads for node in match.nodes))
    made = frozenset().union(*(memory_of(node) for node in (*match.nodes, match.node("x"))))
    changing = next((node for node in writers.changing(read - made) if node not in match.nodes), None)
    if changing is None:
        return None
    reason = f"{changing}{place_of(changing)} may change a parameter or statistic of {match.anchor} in each run"
    return Objection("mutation", reason)


def _held(match: Match, operand: object) -> object:
    """Return the value of an operand that the program holds."""
    if isinstance(operand, fx.Node):
        operand = ModuleAttribute(str(operand.target))
    return attribute_of(match, operand) if isinstance(operand, ModuleAttribute) else operand


def _named(gm: fx.GraphModule) -> set[str]:
    """Return the paths of the modules and tensors that a graph reads."""
    return {str(node.target) for op in ("call_module", "get_attr") for node in gm.graph.find_nodes(op=op)}


def _drop(gm: fx.GraphModule, paths: Collection[str]) -> None:
    """Remove the modules and tensors at these paths, except from modules that the caller owns."""
    for path in paths:
        parent, _, name = path.rpartition(".")
        if _is_own(gm, parent):
            delattr(gm.get_submodule(parent), name)


def _is_own(gm: fx.GraphModule, path: str) -> bool:
    """Return whether torch.fx made the module at a path, and all around it, to hold what a graph names.

    Such a module has no class of its own. Any other is that of the caller.
    """
    holders = itertools.accumulate(path.split("."), "{}.{}".format) if path else ()
    return all(type(gm.get_submodule(holder)) is nn.Module for holder in holders)


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
