"""Fold a BatchNorm in evaluation mode into the convolution before it.

The folded weights are computed from the two modules' own parameters each time the graph runs, so that old checkpoints
load, gradients reach every parameter, and a convolution that is called elsewhere too stays as it is. That takes six
small launches, which read the weights twice, and saves reading and writing the activations once: it pays where those
are larger.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from course_lib.fusion.batch_norm import folded, objection_to_folding
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor


def _pattern(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    shift: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    convolved = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    return F.batch_norm(convolved, mean, variance, scale, shift, training, momentum, eps)


class ConvBatchNorm(FusionPass):
    """The pass `conv_batch_norm`. It runs only when named: its graph evaluates for good, whatever `train()` says."""

    name = "conv_batch_norm"
    by_default = False
    patterns: ClassVar = (_pattern,)

    def guard(self, match: Match) -> Objection | None:
        """Object unless BatchNorm evaluates with statistics, a weight and a bias, and folding moves fewer bytes."""
        return objection_to_folding(match, dimensions=4)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the convolution with folded parameters."""
        return _fused


def _fused(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    shift: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    new_weight, new_bias = folded(weight, bias, mean, variance, scale, shift, eps, weight_dimensions=4)
    return F.conv2d(x, new_weight, new_bias, stride, padding, dilation, groups)
