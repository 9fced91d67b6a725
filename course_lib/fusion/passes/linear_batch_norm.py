"""Fold a BatchNorm in evaluation mode into the linear layer before or after it; see `batch_norm_folding.py`.

Before a layer, the BatchNorm may also work on the rows of a tensor of more dimensions, as `layer_norm_to_batch_norm`
writes it: the tensor is flattened into rows, normalised, and reshaped back.
"""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.fusion.matching import Match
from course_lib.fusion.operands import tensor_facts
from course_lib.fusion.passes.batch_norm_folding import BatchNormFolding
from course_lib.fusion.rules import Objection

# fmt: off
_PATTERNS: tuple[Any, ...] = (
    lambda x, weight, bias, mean, variance, scale, shift, training, momentum, eps:
        F.batch_norm(F.linear(x, weight, bias), mean, variance, scale, shift, training, momentum, eps),
    lambda x, weight, bias, mean, variance, scale, shift, training, momentum, eps:
        F.linear(F.batch_norm(x, mean, variance, scale, shift, training, momentum, eps), weight, bias),
    lambda x, weight, bias, mean, variance, scale, shift, training, momentum, eps, first, last, dim, sizes:
        F.linear(torch.unflatten(F.batch_norm(torch.flatten(x, first, last), mean, variance, scale, shift,
                                              training, momentum, eps), dim, sizes), weight, bias),
)
# fmt: on


class LinearBatchNorm(BatchNormFolding):
    """Fold a BatchNorm into a linear layer. It runs only if requested by name: its graph ignores `train()`."""

    name = "linear_batch_norm"
    patterns: ClassVar = _PATTERNS
    layers: ClassVar = {"linear": (F.linear, 2)}

    def guard(self, match: Match) -> Objection | None:
        """Refuse what the base class refuses, and rows that are not reshaped back to the original shape."""
        return super().guard(match) or _objection_to_rows(match)


def _objection_to_rows(match: Match) -> Objection | None:
    restored = next((call.node for call in match.calls if call.operator.name == "unflatten"), None)
    x = match["x"]
    if restored is None or not isinstance(x, fx.Node):
        return None
    before, after = tensor_facts(x), tensor_facts(restored)
    if before is None or after is None or after.shape != before.shape or match["first"] != 0 or match["dim"] != 0:
        return Objection("shape", f"{restored} does not bring back the shape of {x}")
    return None
