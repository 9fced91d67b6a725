"""The fusions, one a file."""

from course_lib.fusion.passes.bias_gelu import fuse_bias_gelu

__all__ = ["fuse_bias_gelu"]
