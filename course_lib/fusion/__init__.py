"""From graph to graph: find what can be computed by one operator, prove that it may be, and replace it."""

from course_lib.fusion.checked import CheckedFusion
from course_lib.fusion.fusing import fuse
from course_lib.fusion.fusion_pass import FusionPass, GraphPass
from course_lib.fusion.matching import Match
from course_lib.fusion.mutation import may_share_memory, mutates, mutations_of
from course_lib.fusion.passes.bias_gelu import fuse_bias_gelu
from course_lib.fusion.passes.sdpa import Sdpa
from course_lib.fusion.registry import PASSES
from course_lib.fusion.result import FusionResult, Rejected
from course_lib.fusion.rules import Objection
from course_lib.fusion.values import TensorFacts, tensor_facts
from course_lib.fusion.verifying import Finding, Report, verify

__all__ = [  # noqa: RUF022  # in plain order, constants among the rest
    "CheckedFusion",
    "Finding",
    "FusionPass",
    "FusionResult",
    "GraphPass",
    "Match",
    "Objection",
    "PASSES",
    "Rejected",
    "Report",
    "Sdpa",
    "TensorFacts",
    "fuse",
    "fuse_bias_gelu",
    "may_share_memory",
    "mutates",
    "mutations_of",
    "tensor_facts",
    "verify",
]
