"""Tell in a few words how one result differs from another."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from course_lib.capture.frozen_values import RandomState
from course_lib.isolation import imported_numpy
from course_lib.layouts import dense, kind_of

Value = Any
ROUNDINGS = 16.0  # units of rounding by which a number may be off: other kernels add in another order
SHARED_ROUNDINGS = 4.0  # the same, of the largest number beside it: a sum may cancel out


def difference(expected: Value, found: Value, *, magnitude: float = 0.0) -> str:
    """Return a short text on how `found` differs from `expected`, or an empty text if it does not.

    Tensors differ if their dtype or shape does, or their values by more than a few units of rounding. What counts is
    rounding at the tensor's own numbers, however small, or at `magnitude`, the size of the numbers that were summed.
    """
    if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
        return _tensor_difference(expected, found, magnitude)
    if type(expected) is not type(found):
        return f"a {type(found).__name__} in place of a {type(expected).__name__}"
    if isinstance(expected, RandomState):
        return "" if expected == found else "another random state"
    np = imported_numpy()
    if np is not None and isinstance(expected, np.ndarray):
        same = expected.dtype == found.dtype and not expected.dtype.hasobject and np.array_equal(expected, found)
        return "" if same else difference(expected.tolist(), found.tolist())
    if isinstance(expected, dict):
        if list(expected) != list(found):
            return f"keys {', '.join(map(str, found))} in place of {', '.join(map(str, expected))}"
        return _first_difference(list(expected.values()), list(found.values()))
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            return f"{len(found)} parts in place of {len(expected)}"
        return _first_difference(expected, found)
    if hasattr(expected, "__dict__") and not isinstance(expected, nn.Module) and not callable(expected):
        return difference(vars(expected), vars(found))
    return "" if _same(expected, found) else f"{found!r} in place of {expected!r}"


def _same(expected: Value, found: Value) -> bool:
    if isinstance(expected, float):
        return math.isclose(expected, found, rel_tol=1e-6) or (math.isnan(expected) and math.isnan(found))
    return isinstance(expected, nn.Module) or callable(expected) or bool(expected == found)


def _first_difference(expected: Sequence[Value], found: Sequence[Value]) -> str:
    return next(filter(None, map(difference, expected, found)), "")


def _tensor_difference(expected: torch.Tensor, found: torch.Tensor, magnitude: float) -> str:
    expected, found = expected.detach().cpu(), found.detach().cpu()
    if kind_of(expected) != kind_of(found):
        return f"a {kind_of(found) or 'plain'} tensor in place of a {kind_of(expected) or 'plain'} one"
    expected, found = dense(expected), dense(found)
    if expected.dtype != found.dtype:
        return f"{found.dtype} in place of {expected.dtype}".replace("torch.", "")
    if expected.shape != found.shape:
        return f"shape {list(found.shape)} in place of {list(expected.shape)}"
    if torch.equal(expected, found) or not expected.numel():
        return ""
    if not (expected.is_floating_point() or expected.is_complex()):
        return f"off by {(found.double() - expected.double()).abs().max().item():.2g}"
    return _rounding_difference(expected, found, magnitude)


def _rounding_difference(expected: torch.Tensor, found: torch.Tensor, magnitude: float) -> str:
    """Compare numbers that are not equal: they may be off by a few units of rounding, but not infinite or NaN."""
    unit = torch.finfo(expected.dtype).eps
    wide = torch.complex128 if expected.is_complex() else torch.float64
    expected, found = expected.to(wide), found.to(wide)
    same = (expected == found) | (expected.isnan() & found.isnan())
    finite = expected.isfinite() & found.isfinite()
    if not bool((same | finite).all()):
        return "not finite in the same places"
    size = expected.abs().where(finite, 0.0)
    allowed = unit * (ROUNDINGS * size + SHARED_ROUNDINGS * max(size.max().item(), magnitude))
    off = (found - expected).abs().where(~same, 0.0)
    return f"off by {off.max().item():.2g}" if bool((off > allowed).any()) else ""
