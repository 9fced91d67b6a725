"""What folding a BatchNorm into the layer before it computes, and when it may be done.

In evaluation mode BatchNorm maps y to (y − mean) / √(variance + eps) · scale + shift, with fixed numbers for each
channel. That is y · factor + (shift − mean · factor), so a layer y = W x + b can compute it with the weight W · factor
and the bias (b − mean) · factor + shift.
"""

import torch

from course_lib.fusion.matching import Match
from course_lib.fusion.operand_facts import TensorOperands, attribute_of, one_dtype, tensor_operands
from course_lib.fusion.owned import Owned
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor


def folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    *,
    weight_dimensions: int,
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of the layer that computes both; the weight's first dimension are the channels."""
    factor = scale * torch.rsqrt(variance + eps)
    shape = (-1, *[1] * (weight_dimensions - 1))
    offset = -mean if bias is None else bias - mean
    return weight * factor.reshape(shape), offset * factor + shift


def objection_to_folding(match: Match, *, dimensions: int) -> Objection | None:
    """Object unless BatchNorm evaluates with statistics, a weight and a bias, and folding moves fewer bytes.

    `dimensions` are those of the layer's result, with the channels second.
    """
    objection = _objection_to_mode(match)
    if objection is not None:
        return objection
    names = [name for name in ("x", "weight", "bias", "mean", "variance", "scale", "shift") if match[name] is not None]
    operands = tensor_operands(match, *names)
    if not isinstance(operands, TensorOperands):
        return operands
    result = match.anchor.meta.get("val")
    if not isinstance(result, torch.Tensor):
        return Objection("shape unknown", f"the shape of {match.anchor} is not known")
    if result.ndim != dimensions or operands["weight"].shape[0] != result.shape[1]:
        reason = f"{match.anchor} has shape {tuple(result.shape)}"
        return Objection("shape", f"{reason}; its channels must be its second dimension of {dimensions}")
    weights = torch.Size(operands["weight"].shape).numel()
    if weights >= result.numel():
        reason = f"the weight has {weights:,} elements and the result {result.numel():,}"
        return Objection("traffic", f"{reason}, so folding would move more bytes than it saves")
    return one_dtype(operands)


def _objection_to_mode(match: Match) -> Objection | None:
    training = match["training"]
    if isinstance(training, Owned):
        training = attribute_of(match, training)
    if training is not False:
        return Objection("training", f"{match.anchor} normalises by the statistics of the batch")
    missing = [name for name in ("mean", "variance", "scale", "shift") if match[name] is None]
    if missing:
        return Objection("statistics", f"{match.anchor} has no {' and no '.join(missing)}")
    if type(match["eps"]) not in (int, float):
        return Objection("argument", f"{match.anchor} takes eps from {match['eps']!r}, unknown until it runs")
    return None
