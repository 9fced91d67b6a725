"""Fold a division or multiplication by a number after `a @ b` into the smaller factor.

Dividing the attention scores by √head_size touches queries × keys numbers. Dividing the query touches only the
elements of the query. The number of launches stays the same, and fewer bytes are moved. This saves time only if a
factor is smaller than the product, so the pass chooses the factor by its size.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import torch

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorOperands, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor


class MatmulScale(FusionPass):
    """Move a scale from a matrix product to its smaller factor."""

    name = "matmul_scale"
    patterns: ClassVar = (
        lambda a, b, number: torch.matmul(a, b) / number,
        lambda a, b, number: torch.matmul(a, b) * number,
    )

    def guard(self, match: Match) -> Objection | None:
        """Refuse a scale that is zero or no finite number, and factors that are not smaller than the product."""
        number = match["number"]
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return Objection("argument", f"{match.anchor} scales by {number!r}; only a number can be folded")
        if not math.isfinite(number) or number == 0 or not 1e-4 <= abs(number) <= 1e4:
            return Objection("argument", f"{match.anchor} scales by {number!r}: a factor could overflow or vanish")
        operands = tensor_operands(match, "a", "b")
        if isinstance(operands, Objection):
            return operands
        product = match.anchor.meta.get("val")
        if not isinstance(product, torch.Tensor):
            return Objection("shape unknown", f"the shape of {match.anchor} is not known")
        if min(_size(operands, "a"), _size(operands, "b")) >= product.numel():
            reason = f"{match['a']} and {match['b']} are not smaller than their product"
            return Objection("traffic", f"{reason}, so scaling one of them would move as many bytes or more")
        if operands["a"].dtype == torch.float16:
            return Objection("dtype", f"{match['a']} is float16, where a scaled factor could overflow or vanish")
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the matrix product with its smaller factor scaled."""
        operands = tensor_operands(match, "a", "b")
        assert not isinstance(operands, Objection), "the guard has seen the shapes"
        first = _size(operands, "a") <= _size(operands, "b")
        divides = match.calls[0].operator.name == "div"

        def scaled(factor: Tensor, number: float) -> Tensor:
            return factor / number if divides else factor * number

        def fused(a: Tensor, b: Tensor, number: float) -> Tensor:
            return torch.matmul(scaled(a, number), b) if first else torch.matmul(a, scaled(b, number))

        return fused


def _size(operands: TensorOperands, name: str) -> int:
    return math.prod(operands[name].shape)
