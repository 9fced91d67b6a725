"""The error rule: a result must be as exact as eager PyTorch at the same precision, up to a reordered sum.

A tensor passes when its largest error against an fp64 reference is at most twice the largest error of eager PyTorch at
that precision, plus some units of rounding at the reference's largest magnitude. So a sum in another order passes, and
a result of lower precision fails. Infinities and NaN must be exactly where the reference has them.
"""

from dataclasses import dataclass

import torch

EAGER_FACTOR = 2.0
ROUNDINGS = {torch.float64: 1024.0, torch.float32: 16.0, torch.bfloat16: 4.0, torch.float16: 4.0}
"""Units of rounding allowed in addition to eager's error. The next lower precision is 2^29 units away at float64 and
2^13 at float32, so these limits are wide. At float64 the limit also covers eager's own error, which an fp64 reference
cannot show."""


@dataclass(frozen=True)
class Deviation:
    """The error of a tensor against the reference, and the largest error that is allowed."""

    error: float
    bound: float
    rounding: float  # one unit of rounding at the reference's largest magnitude

    @property
    def within_bound(self) -> bool:
        """Return whether the tensor is as exact as the rule requires."""
        return self.error <= self.bound

    def __str__(self) -> str:
        return f"off by {self.error / self.rounding:,.1f} units of rounding, {self.bound / self.rounding:,.1f} allowed"


def deviation(actual: torch.Tensor, truth: torch.Tensor, eager: torch.Tensor, *, magnitude: float = 0.0) -> Deviation:
    """Measure `actual` against `truth`, which is fp64; `eager` is the reference at the precision of `actual`.

        >>> one = torch.ones(3, dtype=torch.float64)
        >>> deviation(one.float() * (1 + 1e-3), one, one.float()).within_bound
        False

    All have one shape. Tensors of integers and booleans have to be equal. `magnitude` is the magnitude of the summed
    numbers, if it is known to be larger than the result: a gradient may consist of rounding errors only.
    """
    if not actual.dtype.is_floating_point:
        return Deviation(float(not torch.equal(actual, eager)), 0.0, 1.0)
    dtype = actual.dtype
    info = torch.finfo(dtype)
    actual, truth, eager = actual.double(), truth.double(), eager.double()
    finite = torch.isfinite(truth) & torch.isfinite(eager)
    agree = (torch.isnan(actual) & torch.isnan(eager)) | (actual == eager)
    error = (actual - truth).abs()[finite]
    eager_error = (eager - truth).abs()[finite]
    largest = max(magnitude, float(truth.abs()[finite].max()) if finite.any() else 0.0)
    rounding = info.eps * max(largest, info.tiny)
    worst = float(error.max()) if error.numel() else 0.0
    if not bool(agree[~finite].all()) or worst != worst:
        worst = float("inf")
    allowed = EAGER_FACTOR * (float(eager_error.max()) if eager_error.numel() else 0.0)
    return Deviation(worst, allowed + ROUNDINGS.get(dtype, 4.0) * rounding, rounding)
