"""Fused operators: one operator in each file, each registered with PyTorch under `torch.ops.course_lib`.

Importing this package registers the operators; no other import in this library has an effect.
"""

from course_lib.kernels.bias_dropout_residual_layer_norm import bias_dropout_residual_layer_norm
from course_lib.kernels.bias_gelu import bias_gelu
from course_lib.kernels.bias_silu import bias_silu
from course_lib.kernels.residual_layer_norm import residual_layer_norm
from course_lib.kernels.scale_dropout_residual_rms_norm import scale_dropout_residual_rms_norm

__all__ = [
    "bias_dropout_residual_layer_norm",
    "bias_gelu",
    "bias_silu",
    "residual_layer_norm",
    "scale_dropout_residual_rms_norm",
]
