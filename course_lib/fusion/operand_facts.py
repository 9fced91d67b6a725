"""What guards ask about the tensors of a match: that their shapes are known, fit, and have one dtype."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import fx

from course_lib.fusion.matching import Match
from course_lib.fusion.owned import Owned
from course_lib.fusion.rules import Objection
from course_lib.fusion.values import SYMBOLIC, TensorFacts, tensor_facts


@dataclass(frozen=True)
class TensorOperands:
    """Shape and dtype of operands, by the names that the pattern has for them."""

    facts: Mapping[str, TensorFacts]

    def __getitem__(self, name: str) -> TensorFacts:
        return self.facts[name]


def tensor_operands(match: Match, *names: str) -> TensorOperands | Objection:
    """Return the facts of the named operands, or an objection if one is no tensor or its shape is unknown."""
    facts: dict[str, TensorFacts] = {}
    for name in names:
        value = match[name]
        if not isinstance(value, (fx.Node, Owned)):
            return Objection("bias shape" if name == "bias" else "shape", f"{name} is {value!r}, which is no tensor")
        known = facts_of(match, value)
        if known is None:
            return Objection("shape unknown", _why_unknown(value))
        facts[name] = known
    return TensorOperands(facts)


def _why_unknown(value: fx.Node | Owned) -> str:
    if isinstance(value, fx.Node) and SYMBOLIC in value.meta:
        return f"{value} has another shape in each run"
    return f"the shape of {value} is not known; run propagate_shapes(gm, example_inputs) first"


def facts_of(match: Match, value: fx.Node | Owned) -> TensorFacts | None:
    """Return shape and dtype of a node's result or of a module's attribute, or None if they are not known."""
    if isinstance(value, fx.Node):
        return tensor_facts(value)
    tensor = attribute_of(match, value)
    return TensorFacts(tuple(tensor.shape), tensor.dtype) if isinstance(tensor, torch.Tensor) else None


def attribute_of(match: Match, owned: Owned) -> object:
    """Return what a module of the graph holds now."""
    value: object = match.anchor.graph.owning_module
    for part in owned.path.split("."):
        value = getattr(value, part)
    return value


def is_bias_of(bias: TensorFacts, x: TensorFacts) -> bool:
    """Return whether `bias` has one dimension, which is the last one of `x`."""
    return len(bias.shape) == 1 and len(x.shape) >= 1 and x.shape[-1] == bias.shape[0]


def one_dtype(operands: TensorOperands) -> Objection | None:
    """Object unless all operands have one floating-point dtype: no fused operator promotes."""
    dtypes = {name: facts.dtype for name, facts in operands.facts.items()}
    if len(set(dtypes.values())) == 1 and next(iter(dtypes.values())).is_floating_point:
        return None
    listed = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
    return Objection("dtype", f"{listed}; the fused operator takes one floating-point dtype")


def normalises_last_dimension(match: Match) -> Objection | None:
    """Object unless `weight` and the LayerNorm's bias are given and it works on the last dimension of `residual`.

    The pattern calls them `normalized_shape`, `weight`, `layer_norm_bias` and `eps`.
    """
    if match["weight"] is None or match["layer_norm_bias"] is None:
        return Objection("affine", f"{match.anchor} has no weight or no bias, and the fused operator takes both")
    if type(match["eps"]) not in (int, float):
        return Objection("argument", f"{match.anchor} takes eps from {match['eps']!r}, unknown until it runs")
    operands = tensor_operands(match, "x", "residual", "weight", "layer_norm_bias")
    if not isinstance(operands, TensorOperands):
        return operands
    shape = operands["residual"].shape
    if operands["x"].shape != shape:
        reason = f"{match['x']} has shape {operands['x'].shape} and {match['residual']} has shape {shape}"
        return Objection("shape", f"{reason}; the fused operator does not broadcast one over the other")
    if not shape or shape[-1] == 0 or operands["weight"].shape != shape[-1:]:
        reason = f"{match.anchor} normalises over {match['normalized_shape']!r} of {shape}"
        return Objection("shape", f"{reason}; the fused operator over the last dimension, of at least one element")
    return one_dtype(operands)
