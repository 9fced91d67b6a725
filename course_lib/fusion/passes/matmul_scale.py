"""On request: fold a division or multiplication by a number after `a @ b` into the smaller factor.

Dividing the attention scores by √head_size touches queries × keys numbers. Dividing the query touches only the
elements of the query. The number of launches stays the same, and fewer bytes are moved. This saves time only if a
factor is smaller than the product, so the pass chooses the factor by its size.

It computes the same real function, but near the ends of the range of a dtype another order of scaling matters: a
product that overflows before it is divided is infinite now and may be finite fused, and a factor near the smallest
number loses digits. So the pass runs only if requested by name, takes only numbers that make the factor smaller, which
cannot overflow, and leaves float16 alone, where both ends are near.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import torch

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorOperands, number_of, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection

Tensor = torch.Tensor
LEAST_SCALE = 1e-4  # attention with heads of 1e8 elements


class MatmulScale(FusionPass):
    """Move a scale from a matrix product to its smaller factor."""

    name = "matmul_scale"
    by_default = False
    patterns: ClassVar = (
        lambda a, b, number: torch.matmul(a, b) / number,
        lambda a, b, number: torch.matmul(a, b) * number,
    )

    def guard(self, match: Match) -> Objection | None:
        """Refuse a scale that is not a number between 1e-4 and 1, and factors that are not smaller than the product."""
        number = number_of(match["number"])
        if number is None:
            return Objection("argument", f"{match.anchor} scales by {match['number']!r}; only a number can be folded")
        factor = 1 / number if _divides(match) and number else number
        if not LEAST_SCALE <= abs(factor) <= 1:
            what = "vanish" if abs(factor) < LEAST_SCALE else "overflow"
            return Objection("argument", f"{match.anchor} scales by {factor:.4g}: a factor could {what}")
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
            return Objection("range", f"{match['a']} is float16, where a scaled factor could vanish")
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the matrix product with its smaller factor scaled."""
        operands = tensor_operands(match, "a", "b")
        assert not isinstance(operands, Objection), "the guard has seen the shapes"
        first = _size(operands, "a") <= _size(operands, "b")
        number = number_of(match["number"])
        assert number is not None, "the guard has seen a number"
        divides = _divides(match)

        def scaled(factor: Tensor) -> Tensor:
            return factor / number if divides else factor * number

        def fused(a: Tensor, b: Tensor, **_: object) -> Tensor:
            return torch.matmul(scaled(a), b) if first else torch.matmul(a, scaled(b))

        return fused


def _divides(match: Match) -> bool:
    return match.calls[0].operator.name == "div"


def _size(operands: TensorOperands, name: str) -> int:
    return math.prod(operands[name].shape)
