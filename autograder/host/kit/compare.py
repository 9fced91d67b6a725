"""Hold an output against its reference by the error rule of `course_lib.fusion.error_rule`, in words for students.

As exact as eager PyTorch at the same precision: a sum in another order passes, and one precision lower fails.
"""

from __future__ import annotations

import torch

from autograder.host.kit.exercise import CheckFailedError
from course_lib.fusion.error_rule import deviation


def require_form(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Raise `CheckFailedError` unless shape and dtype are as expected."""
    if actual.shape != expected.shape:
        raise CheckFailedError(f"{what} has shape {tuple(actual.shape)}; expected {tuple(expected.shape)}.")
    if actual.dtype != expected.dtype:
        raise CheckFailedError(f"{what} has dtype {actual.dtype}; expected {expected.dtype}, the dtype of the inputs.")


def require_close(actual: torch.Tensor, truth: torch.Tensor, eager: torch.Tensor, what: str, where: str = "") -> None:
    """Raise `CheckFailedError` unless form and values are as the error rule asks; ``where`` describes the inputs."""
    require_form(actual, eager, what)
    found = deviation(actual, truth, eager)
    if found.within_bound:
        return
    if torch.isnan(actual).any() and not torch.isnan(truth).any():
        raise CheckFailedError(f"{what} contains NaN{where}, where the reference is finite.")
    raise CheckFailedError(
        f"{what} is off by {found.error:.2g}{where}: {found.error / found.rounding:,.0f} units of rounding, "
        f"where {found.bound / found.rounding:,.1f} are allowed at {str(actual.dtype).removeprefix('torch.')}."
    )
