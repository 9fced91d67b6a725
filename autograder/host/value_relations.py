"""Say how wrong values relate to the right ones, where one simple change leads from one to the other.

A missing factor, a lost sign, a swapped axis or one wrong column tells a student more than the size of the error.
"""

from collections.abc import Iterator

import torch

NEAR = 1e-3  # share of the largest value; far above rounding, far below the mistakes meant here
FEWEST = 4  # elements that a relation needs; two numbers are always related
LIKE_FLOAT32 = 64.0  # units of rounding at float32
SHIFTED = "a bias or a mean is missing, is taken over other axes, or is one of another call"


def relation(actual: torch.Tensor, truth: torch.Tensor) -> str:
    """Return a sentence about how `actual` follows from `truth`; empty if no simple change leads to it.

    >>> right = torch.tensor([1.0, 5.0, -2.0, 4.0])
    >>> relation(2 * right, right)
    'Every value is 2 times the expected one: a factor is missing, or there is one too many.'
    """
    found, right = actual.double(), truth.double()
    if found.numel() < FEWEST or not bool(found.isfinite().all() and right.isfinite().all()):
        return ""
    if not found.any():
        return "The result is zero everywhere."
    near = NEAR * float(right.abs().max())
    wrong = (found - right).abs() > near
    if not wrong.any():
        return ""
    changes = (says for changed, says in _changes(found, right) if _within(found - changed, near))
    return _one_line(wrong) or next(changes, "") or _few(wrong)


def imprecise(error: float, magnitude: float, dtype: torch.dtype) -> str:
    """Return a sentence about an error that is too large for rounding, but small beside the values.

    >>> imprecise(1e-7, 1.0, torch.float64)
    'It is as exact as float32: a step is computed in float32.'
    """
    if dtype is torch.float64:
        unit = torch.finfo(torch.float32).eps * magnitude
        if unit / LIKE_FLOAT32 <= error <= LIKE_FLOAT32 * unit:
            return "It is as exact as float32: a step is computed in float32."
        return ""
    if dtype is torch.float32 and error > LIKE_FLOAT32 * torch.finfo(dtype).eps * magnitude:
        return "A step is less precise than float32, or a formula or a constant is only about right."
    return ""


def _changes(found: torch.Tensor, right: torch.Tensor) -> Iterator[tuple[torch.Tensor, str]]:
    """Yield changes of the right values with their sentences, the simplest first."""
    yield -right, "Its sign is the wrong way round."
    if right.dim() >= 2 and right.shape[-1] == right.shape[-2] > 1:
        yield right.mT, "It is the transpose of the expected result: the last two axes are swapped."
    factor, summand = _factor(found, right), float((found - right).mean())
    if not _within(right - right.mean(), NEAR * float(right.abs().max())):  # of equal numbers any is a multiple
        yield (
            factor * right,
            f"Every value is {factor:.4g} times the expected one: a factor is missing, or there is one too many.",
        )
        yield (
            right + summand,
            f"Every value is {summand:.4g} more than expected: a summand is missing, or there is one too many.",
        )
    order = found.flatten().argsort()
    moved = torch.empty_like(order)
    moved[order] = right.flatten().argsort()
    yield (
        right.flatten()[moved].view_as(found),
        "The expected values stand in other places: an axis is swapped, or parts are joined in another order.",
    )
    for axis in range(found.dim() if found.dim() >= 2 else 0):
        if found.shape[axis] >= FEWEST:
            says = f"Along axis {axis} every line is the expected one {{}} a number of its own: {{}}."
            cause = "what divides or scales it is missing, or taken over other axes"
            yield _factor(found, right, axis) * right, says.format("times", cause)
            shift = (found - right).mean(axis, keepdim=True)
            yield right + shift, says.format("plus", SHIFTED)


def _factor(found: torch.Tensor, right: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    """Return the factor of `right` that fits best; with `axis`, one for each line along it."""
    if axis is None:
        return (found * right).sum() / (right * right).sum().clamp(min=torch.finfo(torch.float64).tiny)
    square = (right * right).sum(axis, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    return (found * right).sum(axis, keepdim=True) / square


def _one_line(wrong: torch.Tensor) -> str:
    """Return a sentence about the one line along an axis that holds all wrong values; empty if there is none."""
    for axis in range(wrong.dim() if wrong.dim() >= 2 else 0):
        indices = wrong.movedim(axis, 0).flatten(1).any(1).nonzero().flatten().tolist()
        if len(indices) == 1 and wrong.shape[axis] > 2:
            at = ", ".join(str(indices[0]) if each == axis else ":" for each in range(wrong.dim()))
            return f"Only values in [{at}] are wrong."
    return ""


def _few(wrong: torch.Tensor) -> str:
    count = int(wrong.sum())
    few = 0 < count <= wrong.numel() / 2
    return f"{count} of {wrong.numel()} values are wrong, the others are right." if few else ""


def _within(difference: torch.Tensor, near: float) -> bool:
    return bool((difference.abs() <= near).all())
