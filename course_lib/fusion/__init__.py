"""Passes from graph to graph: find operators that one fused operator can compute, check each match, and replace it."""

from course_lib.fusion.fuse import fuse
from course_lib.fusion.fusion_pass import FusionPass, GraphPass
from course_lib.fusion.matching import Match
from course_lib.fusion.passes.bias_gelu import fuse_bias_gelu
from course_lib.fusion.passes.conv_batch_norm import ConvBatchNorm
from course_lib.fusion.passes.layer_norm_to_batch_norm import LayerNormToBatchNorm
from course_lib.fusion.passes.linear_batch_norm import LinearBatchNorm
from course_lib.fusion.passes.matmul_scale import MatmulScale
from course_lib.fusion.passes.sdpa import Sdpa
from course_lib.fusion.registry import PASSES
from course_lib.fusion.result import FusionResult, Rejected
from course_lib.fusion.rules import Objection

__all__ = [  # noqa: RUF022  # in plain order, constants among the rest
    "ConvBatchNorm",
    "FusionPass",
    "FusionResult",
    "GraphPass",
    "LayerNormToBatchNorm",
    "LinearBatchNorm",
    "Match",
    "MatmulScale",
    "Objection",
    "PASSES",
    "Rejected",
    "Sdpa",
    "fuse",
    "fuse_bias_gelu",
]
