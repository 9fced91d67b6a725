"""The error rule: as exact as eager PyTorch at the same precision, give or take a reordered sum.

An output passes when its largest error against an fp64 reference is at most twice the largest error of eager PyTorch
at that precision, plus some units of rounding at the reference's largest magnitude. So a sum in another order passes,
and one precision lower fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from autograder.host.kit.exercise import CheckFailedError

EAGER_FACTOR = 2.0
ROUNDINGS = {torch.float64: 1024.0, torch.float32: 16.0, torch.bfloat16: 4.0, torch.float16: 4.0}
"""Units of rounding allowed beside eager's error. One precision lower is 2^29 units away at float64 and 2^13 at
float32, so the room there is wide; at float64 it also stands for eager's own error, which fp64 cannot show."""


@dataclass(frozen=True)
class Difference:
    """How far an output is from the reference, and how far it may be."""

    error: float
    bound: float
    rounding: float  # one unit of rounding at the reference's largest magnitude

    @property
    def within_bound(self) -> bool:
        """Whether the output is as exact as the rule asks."""
        return self.error <= self.bound

    @property
    def roundings(self) -> float:
        """The error in units of rounding."""
        return self.error / self.rounding


def measure(actual: torch.Tensor, truth: torch.Tensor, eager: torch.Tensor) -> Difference:
    """Compare values of one shape; ``truth`` is fp64, ``eager`` the same formula at the precision of ``actual``."""
    finite = torch.isfinite(truth)
    agree = torch.where(torch.isnan(truth), torch.isnan(actual), actual.double() == truth.to(actual.dtype).double())
    error = (actual.double() - truth).abs()[finite]
    eager_error = (eager.double() - truth).abs()[finite & torch.isfinite(eager)]
    largest = float(truth.abs()[finite].max()) if finite.any() else 0.0
    rounding = torch.finfo(actual.dtype).eps * max(largest, torch.finfo(actual.dtype).tiny)
    eagers = float(eager_error.max()) if eager_error.numel() else 0.0
    bound = EAGER_FACTOR * eagers + ROUNDINGS[actual.dtype] * rounding
    worst = float(error.max()) if error.numel() else 0.0
    if not bool(agree[~finite].all()) or worst != worst:
        worst = float("inf")
    return Difference(worst, bound, rounding)


def require_form(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Raise `CheckFailedError` unless shape and dtype are as expected."""
    if actual.shape != expected.shape:
        raise CheckFailedError(f"{what} has shape {tuple(actual.shape)}; expected {tuple(expected.shape)}.")
    if actual.dtype != expected.dtype:
        raise CheckFailedError(f"{what} has dtype {actual.dtype}; expected {expected.dtype}, the dtype of the inputs.")


def require_close(actual: torch.Tensor, truth: torch.Tensor, eager: torch.Tensor, what: str, where: str = "") -> None:
    """Raise `CheckFailedError` unless form and values are as the error rule asks; ``where`` describes the inputs."""
    require_form(actual, eager, what)
    difference = measure(actual, truth, eager)
    if difference.within_bound:
        return
    if torch.isnan(actual).any() and not torch.isnan(truth).any():
        raise CheckFailedError(f"{what} contains NaN{where}, where the reference is finite.")
    raise CheckFailedError(
        f"{what} is off by {difference.error:.2g}{where}: {difference.roundings:,.0f} units of rounding, "
        f"where {difference.bound / difference.rounding:,.1f} are allowed at "
        f"{str(actual.dtype).removeprefix('torch.')}."
    )
