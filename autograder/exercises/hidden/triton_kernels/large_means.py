"""Rows whose mean is far from zero: the mean of the squares gives an inexact variance there, the right way does not."""

from typing import Any

import torch

from autograder.host import comparison
from autograder.host.checks.kernel_checks import Demand
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case
from autograder.host.kinds.triton import KernelRun

MEANS = (600.0, 900.0)  # beside a deviation of about one


def exactly_summed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Round tensors to multiples of 1/64, so that sums of some hundred are exact in float32, in every order."""
    return tuple(torch.round(arg * 64) / 64 if isinstance(arg, torch.Tensor) else arg for arg in args)


def of_large_means(demand: Demand) -> Demand:
    """Demand this of rows far from zero; outputs that are only about right there come from squares that cancel."""

    def run_demand(run: KernelRun, case: Case) -> None:
        try:
            demand(run, case)
        except comparison.InexactError:
            raise CheckFailedError(
                f"The result is inexact{case.where}. If rows near zero come out right, the mean of the squares less "
                "the square of the mean was taken, two large numbers that are almost equal: subtract the mean from the "
                "row first, then square what is left."
            ) from None

    return run_demand
