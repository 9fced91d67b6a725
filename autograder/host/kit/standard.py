"""The standard case set: what every function on tensors is tried with, from one line of an exercise.

    STANDARD = Standard(reference, lambda draw, n, dtype: (draw.normal(n, 8, dtype=dtype), draw.normal(8, dtype=dtype)),
                        names=("the output",), inputs=("x", "bias"))
    checks=standard_checks(STANDARD, {"odd sizes": 1, "precision": 1, "gradients": 1, "side effects": 0.5})

The exercise says what the arguments of a size are; sizes, strides, precisions, gradients, mutation, aliasing, calls
in a row and in two threads follow. Cases that make no sense for it are left out by giving them no points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.host.kit.answers.functions import (
    Run,
    agrees,
    gradients_agree,
    keeps_calls_apart,
    leaves_inputs_alone,
    remembers_nothing,
)
from autograder.host.kit.answers.tensors import Case, Reference
from autograder.host.kit.draw import Draw
from autograder.host.kit.exercise import Check

ODD_SIZES = (1, 3, 127, 129)
SMALL = 5
PRECISIONS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

Make = Callable[[Draw, int, torch.dtype], tuple[Any, ...]]
"""The arguments of one call of a given size and precision; a size of 0 is an empty batch."""


@dataclass(frozen=True)
class Standard:
    """What an exercise says about its function."""

    reference: Reference
    make: Make
    names: Sequence[str]  # of the outputs, as messages call them
    inputs: Sequence[str] = ()  # of the first arguments, by which gradients are asked for
    precisions: Sequence[torch.dtype] = PRECISIONS


def standard_checks(standard: Standard, points: Mapping[str, float]) -> tuple[Check, ...]:
    """One check for each category that gets points; raises ``ValueError`` for a category that does not exist."""
    unknown = points.keys() - _CHECKS.keys()
    if unknown:
        raise ValueError(f"no standard check is called {min(unknown)!r}; there are {', '.join(_CHECKS)}")
    return tuple(Check(_CHECKS[c][0], c, points[c], _CHECKS[c][1](standard)) for c in _CHECKS if c in points)


def odd_sizes(standard: Standard, draw: Draw) -> Iterator[Case]:
    """Sizes at which tiles and vectors do not come out even."""
    for size in ODD_SIZES:
        yield Case(standard.make(draw, size, torch.float32), label=f"at size {size}")


def strides(standard: Standard, draw: Draw) -> Iterator[Case]:
    """Tensors that are views: transposed, every second element, expanded, behind an offset."""
    views = {"transposed": _transposed, "strided": _every_second, "expanded": _expanded, "shifted": _shifted}
    for name, view in views.items():
        arguments = standard.make(draw, SMALL, torch.float32)
        yield Case(tuple(view(a) if isinstance(a, torch.Tensor) else a for a in arguments), label=f"with {name} inputs")


def empty(standard: Standard, draw: Draw) -> Iterator[Case]:
    """No rows at all, and one case with some, so that doing nothing is not enough."""
    yield Case(standard.make(draw, 0, torch.float32), label="with an empty batch")
    yield Case(standard.make(draw, SMALL, torch.float32))


def precisions(standard: Standard, draw: Draw) -> Iterator[Case]:
    """Every precision that the exercise has."""
    for dtype in standard.precisions:
        yield Case(standard.make(draw, SMALL, dtype), label=f"in {str(dtype).removeprefix('torch.')}")


def differentiable(standard: Standard, draw: Draw) -> Iterator[Case]:
    """One case in double precision, where a wrong gradient has nowhere to hide, and one in single."""
    for dtype in (torch.float64, torch.float32):
        yield Case(standard.make(draw, SMALL, dtype), label=f"in {str(dtype).removeprefix('torch.')}")


def repeated(standard: Standard, draw: Draw) -> Iterator[Case]:
    """The same size three times with other numbers."""
    for _ in range(3):
        yield Case(standard.make(draw, SMALL, torch.float32), label="called several times in a row")


def several(standard: Standard, draw: Draw) -> Iterator[Case]:
    """The same size for each of two threads."""
    for _ in range(2):
        yield Case(standard.make(draw, SMALL, torch.float32), label="called from two threads at once")


def _of(standard: Standard, cases: Callable[[Standard, Draw], Iterable[Case]]) -> Callable[[Draw], Iterable[Case]]:
    return lambda draw: cases(standard, draw)


def _agreeing(cases: Callable[[Standard, Draw], Iterable[Case]]) -> Callable[[Standard], Run]:
    return lambda s: agrees(s.reference, _of(s, cases), s.names)


_CHECKS: dict[str, tuple[str, Callable[[Standard], Run]]] = {
    "odd sizes": ("odd sizes", _agreeing(odd_sizes)),
    "strides": ("transposed, strided, expanded and shifted inputs", _agreeing(strides)),
    "empty batch": ("an empty batch", _agreeing(empty)),
    "precision": ("every precision", _agreeing(precisions)),
    "gradients": (
        "gradients reach every input",
        lambda s: gradients_agree(s.reference, _of(s, differentiable), s.names, s.inputs),
    ),
    "side effects": (
        "inputs stay as they were",
        lambda s: leaves_inputs_alone(s.reference, _of(s, repeated), s.names),
    ),
    "calls in a row": ("calls in a row", lambda s: remembers_nothing(s.reference, _of(s, repeated), s.names)),
    "threads": ("two threads at once", lambda s: keeps_calls_apart(s.reference, _of(s, several), s.names)),
}


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.dim() > 1 else tensor


def _every_second(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(*tensor.shape, 2, dtype=tensor.dtype)
    wide[..., 0] = tensor
    return wide[..., 0]


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:1].expand(tensor.shape) if tensor.dim() else tensor


def _shifted(tensor: torch.Tensor) -> torch.Tensor:
    longer = torch.cat([torch.zeros(3, dtype=tensor.dtype), tensor.flatten()])
    return longer[3:].view(tensor.shape)
