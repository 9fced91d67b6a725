"""Fold a BatchNorm in evaluation mode into the linear layer before or after it; see `course_lib.fusion.batch_norm`."""

from typing import Any, ClassVar

import torch.nn.functional as F

from course_lib.fusion.batch_norm import BatchNormFolding

# fmt: off
_PATTERNS: tuple[Any, ...] = (
    lambda x, weight, bias, mean, variance, scale, shift, training, momentum, eps:
        F.batch_norm(F.linear(x, weight, bias), mean, variance, scale, shift, training, momentum, eps),
    lambda x, weight, bias, mean, variance, scale, shift, training, momentum, eps:
        F.linear(F.batch_norm(x, mean, variance, scale, shift, training, momentum, eps), weight, bias),
)
# fmt: on


class LinearBatchNorm(BatchNormFolding):
    """The pass `linear_batch_norm`. It runs only when named: its graph evaluates for good, whatever `train()` says."""

    name = "linear_batch_norm"
    patterns: ClassVar = _PATTERNS
    layer: ClassVar = staticmethod(F.linear)
    dimensions = 2
