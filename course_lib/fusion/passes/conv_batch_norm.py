"""Fold a BatchNorm in evaluation mode into the convolution before it; see `batch_norm_folding.py`."""

from typing import Any, ClassVar

import torch.nn.functional as F

from course_lib.fusion.passes.batch_norm_folding import BatchNormFolding

# fmt: off
_PATTERNS: tuple[Any, ...] = (
    lambda x, weight, bias, stride, padding, dilation, groups, mean, variance, scale, shift, training, momentum, eps:
        F.batch_norm(F.conv1d(x, weight, bias, stride, padding, dilation, groups),
                     mean, variance, scale, shift, training, momentum, eps),
    lambda x, weight, bias, stride, padding, dilation, groups, mean, variance, scale, shift, training, momentum, eps:
        F.batch_norm(F.conv2d(x, weight, bias, stride, padding, dilation, groups),
                     mean, variance, scale, shift, training, momentum, eps),
)
# fmt: on


class ConvBatchNorm(BatchNormFolding):
    """Fold a BatchNorm into a convolution of one or two dimensions.

    It runs only if requested by name: its graph ignores `train()`.
    """

    name = "conv_batch_norm"
    patterns: ClassVar = _PATTERNS
    layers: ClassVar = {"conv1d": (F.conv1d, 3), "conv2d": (F.conv2d, 4)}
    arguments: ClassVar = ("stride", "padding", "dilation", "groups")
