"""Lossy, on request: compute GELU by its tanh approximation, as GPT-2 does; it differs by up to 0.0005."""

from collections.abc import Callable
from typing import ClassVar

import torch.nn.functional as F

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match


class GeluTanh(FusionPass):
    """Replace exact GELU by its tanh approximation."""

    name = "gelu_tanh"
    level = "lossy"
    by_default = False
    patterns: ClassVar = (lambda x: F.gelu(x),)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return GELU with its tanh approximation."""
        return lambda x: F.gelu(x, approximate="tanh")
