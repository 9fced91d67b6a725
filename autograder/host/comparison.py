"""Compare an output with its reference by the error rule of `course_lib.verify.error_rule`; messages are for students.

An output must be as exact as eager PyTorch at the same precision: a different order of summation passes, a lower
precision fails.
"""

import math

import torch

from autograder.host.exercise import CheckFailedError
from autograder.host.value_relations import imprecise, relation
from course_lib.verify.error_rule import ROUNDINGS, deviation

NO_ROUNDING = 0.05  # share of the largest value; no lower precision is off by more, so the message gives the values


class InexactError(CheckFailedError):
    """The values are about right, and less exact than rounding explains."""


def require_form(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Raise `CheckFailedError` unless shape and dtype are as expected."""
    if actual.shape != expected.shape:
        raise CheckFailedError(f"{what} has shape {tuple(actual.shape)}; expected {tuple(expected.shape)}.")
    if actual.dtype != expected.dtype:
        raise CheckFailedError(f"{what} has dtype {actual.dtype}; expected {expected.dtype}, the dtype of the inputs.")


def alike(found: torch.Tensor, other: torch.Tensor, *, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Tell whether two tensors have the same shape, dtype and, within the tolerances, values.

    `torch.allclose` raises for tensors of two dtypes, and an answer chooses the dtype of its outputs.
    """
    same = found.shape == other.shape and found.dtype == other.dtype
    return same and torch.allclose(found, other, rtol=rtol, atol=atol)


def require_close(
    actual: torch.Tensor,
    truth: torch.Tensor,
    eager: torch.Tensor,
    what: str,
    where: str = "",
    *,
    magnitude: float = 0.0,
) -> None:
    """Raise `CheckFailedError` unless form and values follow the error rule; `where` describes the inputs.

    `magnitude` is that of `deviation`, and must come from the host's tensors.
    """
    require_form(actual, eager, what)
    found = deviation(actual, truth, eager, magnitude=magnitude)
    if found.within_bound:
        return
    if torch.isnan(actual).any() and not torch.isnan(truth).any():
        raise CheckFailedError(f"{what} contains NaN{where}, where the reference is finite.")
    magnitude = found.rounding / torch.finfo(actual.dtype).eps if actual.is_floating_point() else 1.0
    if found.error > NO_ROUNDING * magnitude:
        raise CheckFailedError(_wrong(actual, truth, found.error, what, where))
    raise InexactError(
        f"{what} is off by {_beyond(found.error, found.bound, actual.dtype, where)} "
        f"{imprecise(found.error, magnitude, actual.dtype)}".rstrip()
    )


def _wrong(actual: torch.Tensor, truth: torch.Tensor, error: float, what: str, where: str) -> str:
    told = f"{what} is off by {error:.2g}{where}: {_worst(actual, truth)}. That is no rounding."
    return f"{told} {relation(actual, truth)}".rstrip()


def _worst(actual: torch.Tensor, truth: torch.Tensor) -> str:
    """Return the largest difference as `[1, 0] is 2, expected 3`."""
    error = (actual.double() - truth.double()).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    place = [int(i) for i in torch.unravel_index(error.argmax(), error.shape)]
    return f"{place or 'it'} is {float(actual[tuple(place)]):.4g}, expected {float(truth[tuple(place)]):.4g}"


def require_rounded(
    actual: torch.Tensor, truth: torch.Tensor, *, dtype: torch.dtype, scale: float, what: str, where: str = ""
) -> None:
    """Raise `CheckFailedError` unless `actual` is `truth`, in fp64, up to some roundings at magnitude `scale`.

    Use this for results computed from the answer's own outputs, such as a product with one of them. `require_close`
    would take eager's error from numbers that the answer chose, and extreme numbers would allow anything. `dtype` and
    `scale` (the size of the summands) must come from the host's inputs.
    """
    require_form(actual, truth.to(dtype), what)
    rounding = torch.finfo(dtype).eps * scale
    error = float((actual.double() - truth).abs().max()) if truth.numel() else 0.0
    allowed = ROUNDINGS[dtype]
    if not error <= allowed * rounding:  # also where either is NaN
        if error > NO_ROUNDING * max(scale, float(truth.abs().max())):
            raise CheckFailedError(_wrong(actual, truth, error, what, where))
        raise InexactError(
            f"{what} is off by {_beyond(error, allowed * rounding, dtype, where)} "
            f"{imprecise(error, scale, dtype)}".rstrip()
        )


def _beyond(error: float, bound: float, dtype: torch.dtype, where: str) -> str:
    digits = next((n for n in (2, 4, 8) if f"{error:.{n}g}" != f"{bound:.{n}g}"), 17)
    name = str(dtype).removeprefix("torch.")
    return f"{error:.{digits}g}{where}; at {name}, rounding makes at most {bound:.{digits}g}."
