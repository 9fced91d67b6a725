"""Fused operators: one operator a file, each registered with PyTorch under `torch.ops.course_lib`.

Importing this package registers the operators; that is the one effect an import has in this library.
"""

from course_lib.kernels.bias_gelu import bias_gelu
from course_lib.kernels.bias_silu import bias_silu

__all__ = ["bias_gelu", "bias_silu"]
