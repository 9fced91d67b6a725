"""Fuse `x + a * b` onto `torch.addcmul`, and a number that scales the product or a quotient onto `torch.add`.

All are operators of PyTorch: one launch less, and one intermediate result less in memory.

A number stays where the program has it: `a * b * value` is computed from the product, `(a * value) * b` from `a`.
Another order overflows or vanishes for other operands, and the `value` of `addcmul` is multiplied in another order on
each device. `torch.addcdiv` is not used: its derivative squares the divisor, which overflows from 1.8e19 (at fp32).

The fused operator may add before it rounds. Its result differs from the program's only where what is added is beyond
the largest number, and a number of opposite sign brings the sum back: the program gives infinity, and the fused
operator the sum. At float16 this is near, so float16 stays as it is; at other types it is beyond 3e38.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import fx

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import number_of, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor


class AddScaled(FusionPass):
    """Fuse a sum with a product, or with a scaled product or quotient, onto one operator of PyTorch."""

    name = "add_scaled"
    patterns: ClassVar = (
        lambda x, a, b, value: x + a * b * value,
        lambda x, a, b, value: x + a / b * value,
        lambda x, a, b: x + a * b,
    )

    def guard(self, match: Match) -> Objection | None:
        """Refuse all but contiguous tensors of one shape and one wide dtype, scaled by a number."""
        value = match.operands.get("value", 1.0)
        if "value" in match.operands and number_of(value) is None:
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
        if operands["x"].dtype == torch.float16:
            reason = f"{match['x']} is float16, where a product above 65,504 is infinite now, and would not be fused"
            return Objection("range", reason)
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return `addcmul`, or the product or quotient and a sum that scales it."""
        if "value" not in match.operands:
            return lambda x, a, b: torch.addcmul(x, a, b)
        value = number_of(match["value"])
        assert value is not None, "the guard has seen a number"
        divides = any(call.operator.name == "div" for call in match.calls)

        def fused(x: Tensor, a: Tensor, b: Tensor, **_: object) -> Tensor:
            return torch.add(x, a / b if divides else a * b, alpha=value)

        return fused


def _is_contiguous(value: object) -> bool:
    known = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(known, torch.Tensor) and known.is_contiguous()
