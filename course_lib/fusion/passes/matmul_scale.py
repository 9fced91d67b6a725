"""On request: fold a division or multiplication by a number after `a @ b` into the smaller factor.

Dividing the attention scores by √head_size touches queries × keys numbers. Dividing the query touches only the
elements of the query. The number of launches stays the same, and fewer bytes are moved. This saves time only if a
factor is smaller than the product, so the pass chooses the factor by its size.

Near the ends of the range of a dtype the order of scaling matters. A product that overflows before it is divided is
infinite in the program, and could be finite after the move; a factor near the smallest number would lose digits. So the
graph looks at the factors in each run: if a sum of their products could overflow, or a scaled number would be too small
to have all digits, it computes in the order of the program. A zero counts as too small. This reads both factors once
more, in three launches, and waits for a GPU. If you promise that all numbers are far from both ends,
`MatmulScale(within_range=True)` looks at none.

The pass takes only numbers that make the factor smaller, and leaves float16 alone, where both ends are near.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorOperands, number_of, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import new_module

Tensor = torch.Tensor
LEAST_SCALE = 1e-4  # attention with heads of 1e8 elements


class ScaledProduct(nn.Module):
    """A matrix product and a scale, which moves to one factor if the numbers are far from the ends of the range."""

    def __init__(self, number: float, *, divides: bool, first: bool) -> None:
        """Take the number, whether the product is divided by it, and whether the first factor is the smaller one."""
        super().__init__()
        self.number, self.divides, self.first = number, divides, first

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the scaled product."""
        if not torch.compiler.is_compiling() and self.is_within_range(a.detach(), b.detach()):
            return self.moved(a, b)
        return self.scaled(torch.matmul(a, b))

    def moved(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the product of one scaled factor and the other."""
        return torch.matmul(self.scaled(a), b) if self.first else torch.matmul(a, self.scaled(b))

    def scaled(self, value: Tensor) -> Tensor:
        """Return a tensor times the number, or divided by it, as the program does."""
        return value / self.number if self.divides else value * self.number

    def is_within_range(self, a: Tensor, b: Tensor) -> bool:
        """Return whether no sum of products can overflow, and no scaled number loses digits.

        The answer is False where numbers cannot be read, as under `vmap`, and True for tensors without data.
        """
        if not a.numel() or not b.numel():
            return False
        norms = [torch.linalg.vector_norm(one, order) for one, order in (
            (a, math.inf), (b, math.inf), (a if self.first else b, -math.inf))]  # fmt: skip
        if isinstance(a, FakeTensor):
            return True
        try:
            largest, other, least = (float(norm) for norm in norms)
        except RuntimeError:  # of vmap and of tracers
            return False
        info, factor = torch.finfo(a.dtype), 1 / self.number if self.divides else self.number
        return 2 * a.shape[-1] * largest * other <= info.max and least * abs(factor) >= info.tiny

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{'/' if self.divides else '*'} {self.number:.4g}, {'first' if self.first else 'second'} factor"


class MatmulScale(FusionPass):
    """Move a scale from a matrix product to its smaller factor; runs only if requested by name."""

    name = "matmul_scale"
    by_default = False
    patterns: ClassVar = (
        lambda a, b, number: torch.matmul(a, b) / number,
        lambda a, b, number: torch.matmul(a, b) * number,
    )

    def __init__(self, *, within_range: bool = False) -> None:
        """Move the scale without a look at the numbers, if the caller promises that they are far from both ends."""
        super().__init__()
        self._promised = within_range

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
        small, large = sorted((_size(operands, "a"), _size(operands, "b")))
        # Read and written to be scaled, and read with the other one to look at the numbers.
        moved = 2 * small if self._promised else 4 * small + large
        if moved >= 2 * product.numel():
            reason = f"{match['a']} and {match['b']} are not much smaller than their product"
            return Objection("traffic", f"{reason}, so scaling one of them would move as many bytes or more")
        if operands["a"].dtype == torch.float16:
            return Objection("range", f"{match['a']} is float16, where a scaled factor could vanish")
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return the matrix product with its smaller factor scaled."""
        operands = tensor_operands(match, "a", "b")
        assert not isinstance(operands, Objection), "the guard has seen the shapes"
        first = _size(operands, "a") <= _size(operands, "b")
        number, owner = number_of(match["number"]), match.anchor.graph.owning_module
        assert number is not None, "the guard has seen a number"
        assert owner is not None, "a pass works on the graph of a GraphModule"
        module = ScaledProduct(number, divides=_divides(match), first=first)
        if self._promised:
            return lambda a, b, **_: module.moved(a, b)
        call = new_module(owner, "scaled_product", module)

        def checked(a: fx.Proxy, b: fx.Proxy, **_: Any) -> fx.Proxy:
            return call(a, b)

        return checked


def _divides(match: Match) -> bool:
    return match.calls[0].operator.name == "div"


def _size(operands: TensorOperands, name: str) -> int:
    return math.prod(operands[name].shape)
