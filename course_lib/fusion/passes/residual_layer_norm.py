"""Fuse `layer_norm(x + residual)` onto the operator `course_lib::residual_layer_norm`."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

import course_lib.kernels  # noqa: F401  # registers the operator that we fuse onto
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import normalises_last_dimension
from course_lib.fusion.rules import Objection


class ResidualLayerNorm(FusionPass):
    """Fuse a residual sum and LayerNorm into one call, which writes and reads N elements less."""

    name = "residual_layer_norm"
    patterns: ClassVar = (
        lambda x, residual, normalized_shape, weight, layer_norm_bias, eps: F.layer_norm(
            x + residual, normalized_shape, weight, layer_norm_bias, eps
        ),
    )

    def guard(self, match: Match) -> Objection | None:
        """Refuse operands of several shapes or dtypes, and a normalisation of more than the last dimension."""
        return normalises_last_dimension(match)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the fused operator."""
        return _fused


def _fused(**operands: Any) -> object:
    given = (operands[name] for name in ("x", "residual", "weight", "layer_norm_bias", "eps"))
    return torch.ops.course_lib.residual_layer_norm(*given)
