"""What runs passes of the course or of PyTorch: exercises on passes or schedules leave it out."""

PASSES = tuple(
    f"course_lib.fusion.{part}"
    for part in ("__init__", "composites", "fuse", "machine_written", "mistaken", "passes", "registry")
)
"""The passes, and what runs or names them.

What schedules need of `course_lib.fusion` stays: without its `__init__`, it is a folder of modules that Python imports
by their full names.
"""

PASSES_OF_TORCH = (
    "torch._export.passes.constant_folding",
    "torch._functorch.compile_utils",
    "torch._inductor.constant_folding",
    "torch._inductor.fx_passes",
    "torch.fx.experimental.const_fold",
    "torch.fx.passes.dialect",
)
"""PyTorch's passes that share equal nodes or fold constants."""
