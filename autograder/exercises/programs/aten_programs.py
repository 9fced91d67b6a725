"""Programs for passes of Inductor: their graphs hold the operators that Inductor's decompositions leave."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from autograder.host.traced import Program, TensorSpec


def aten_program(
    name: str,
    function: Callable[..., object],
    inputs: Sequence[TensorSpec],
    fused: int = 1,
    reason: str = "",
    *,
    missed: str = "",
    plain: Program | None = None,
) -> Program:
    """Return a program whose graph is the decomposed graph of `function` for `inputs`."""

    def build() -> fx.GraphModule:
        from course_lib.inductor_passes import decomposed  # imports Inductor, which takes seconds

        return decomposed(function, [torch.empty(spec.shape, dtype=spec.dtype) for spec in inputs])

    make: Callable[[], Callable[..., Any]] = build
    return Program(f"`{name}`", make, tuple(inputs), fused, reason=reason, missed=missed, plain=plain)
