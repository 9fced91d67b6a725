"""Fuse `x + value * a * b` onto `torch.addcmul`, and `x + value * a / b` onto `torch.addcdiv`.

Both are operators of PyTorch: one launch instead of two or three, and no intermediate result in memory.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import fx

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import one_dtype, tensor_operands
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor


class AddScaled(FusionPass):
    """Fuse a sum with a scaled product or quotient onto one operator of PyTorch."""

    name = "add_scaled"
    patterns: ClassVar = (
        lambda x, a, b, value: x + a * b * value,
        lambda x, a, b, value: x + (a * value) * b,
        lambda x, a, b, value: x + a / b * value,
        lambda x, a, b, value: x + (a * value) / b,
        lambda x, a, b: x + a * b,
        lambda x, a, b: x + a / b,
    )

    def guard(self, match: Match) -> Objection | None:
        """Refuse all but three contiguous tensors of one shape and one dtype, scaled by a number."""
        value = match.operands.get("value", 1.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return Objection("argument", f"{match.anchor} scales by {value!r}; only a number can be fused")
        operands = tensor_operands(match, "x", "a", "b")
        if isinstance(operands, Objection):
            return operands
        shapes = {facts.shape for facts in operands.values()}
        if len(shapes) != 1:
            reason = f"{match['x']}, {match['a']} and {match['b']} have the shapes {sorted(shapes)}"
            return Objection("shape", f"{reason}; broadcast, the fused operator may lay out its result differently")
        scattered = [match[name] for name in ("x", "a", "b") if not _is_contiguous(match[name])]
        if scattered:
            return Objection("shape", f"{scattered[0]} is not known to be contiguous, so the strides may change")
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return `addcmul` or `addcdiv`, with the factor as its `value`."""
        function = torch.addcdiv if any(call.operator.name == "div" for call in match.calls) else torch.addcmul

        def fused(x: Tensor, a: Tensor, b: Tensor, value: float = 1) -> Tensor:
            return function(x, a, b) if value == 1 else function(x, a, b, value=value)

        return fused


def _is_contiguous(value: object) -> bool:
    known = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(known, torch.Tensor) and known.is_contiguous()
