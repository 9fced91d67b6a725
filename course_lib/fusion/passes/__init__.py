"""The passes, one a file."""

from course_lib.fusion.passes.add_scaled import AddScaled
from course_lib.fusion.passes.bias_dropout_residual_layer_norm import BiasDropoutResidualLayerNorm
from course_lib.fusion.passes.bias_gelu import BiasGelu, fuse_bias_gelu
from course_lib.fusion.passes.common_subexpressions import CommonSubexpressions
from course_lib.fusion.passes.constant_folding import ConstantFolding
from course_lib.fusion.passes.conv_batch_norm import ConvBatchNorm
from course_lib.fusion.passes.dead_code import DeadCode
from course_lib.fusion.passes.formulas import Formulas
from course_lib.fusion.passes.gelu_tanh import GeluTanh
from course_lib.fusion.passes.gelu_to_relu import GeluToRelu
from course_lib.fusion.passes.layer_norm_to_batch_norm import LayerNormToBatchNorm
from course_lib.fusion.passes.linear_batch_norm import LinearBatchNorm
from course_lib.fusion.passes.matmul_scale import MatmulScale
from course_lib.fusion.passes.normalise import Normalise
from course_lib.fusion.passes.out_of_place import OutOfPlace
from course_lib.fusion.passes.qkv_merge import QkvMerge
from course_lib.fusion.passes.residual_layer_norm import ResidualLayerNorm
from course_lib.fusion.passes.sdpa import Sdpa

__all__ = [
    "AddScaled",
    "BiasDropoutResidualLayerNorm",
    "BiasGelu",
    "CommonSubexpressions",
    "ConstantFolding",
    "ConvBatchNorm",
    "DeadCode",
    "Formulas",
    "GeluTanh",
    "GeluToRelu",
    "LayerNormToBatchNorm",
    "LinearBatchNorm",
    "MatmulScale",
    "Normalise",
    "OutOfPlace",
    "QkvMerge",
    "ResidualLayerNorm",
    "Sdpa",
    "fuse_bias_gelu",
]
