"""Lossy, on request: replace GELU by ReLU. The model computes another function and must be trained again."""

from collections.abc import Callable
from typing import ClassVar

import torch.nn.functional as F

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match


class GeluToRelu(FusionPass):
    """Replace GELU by ReLU."""

    name = "gelu_to_relu"
    level = "lossy"
    by_default = False
    patterns: ClassVar = (lambda x, approximate: F.gelu(x, approximate=approximate),)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return ReLU, whatever the formula of GELU was."""
        return lambda x, approximate: F.relu(x)
