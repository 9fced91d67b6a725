"""The passes, one a file."""

from course_lib.fusion.passes.bias_dropout_residual_layer_norm import FuseBiasDropoutResidualLayerNorm
from course_lib.fusion.passes.bias_gelu import BiasGelu, fuse_bias_gelu
from course_lib.fusion.passes.residual_layer_norm import ResidualLayerNorm

__all__ = ["BiasGelu", "FuseBiasDropoutResidualLayerNorm", "ResidualLayerNorm", "fuse_bias_gelu"]
