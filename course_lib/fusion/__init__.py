"""From graph to graph: find what can be computed by one operator, prove that it may be, and replace it."""

from course_lib.fusion.mutation import may_share_memory, mutates, mutations_of
from course_lib.fusion.passes.bias_gelu import fuse_bias_gelu
from course_lib.fusion.result import FusionResult, Rejected
from course_lib.fusion.values import TensorFacts, tensor_facts

__all__ = [
    "FusionResult",
    "Rejected",
    "TensorFacts",
    "fuse_bias_gelu",
    "may_share_memory",
    "mutates",
    "mutations_of",
    "tensor_facts",
]
