"""The speed requirement of an exercise: a baseline, the ideal ratio, and the points for speed.

    speed=Speed(Program("`F.silu(x + b)`", lambda: silu_of_sum, (TensorSpec((4096, 768)), TensorSpec((768,))), 1), 2.0)

An exercise adds only this line, and `speed=True` to its checks of counted cost, such as `fusion_checks.costs`. The
points of these checks are the exercise's points for speed. The measured ratio earns them where the grading device
measures, and the counts elsewhere, so the maximum is the same on every machine.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.traced import Program, Traced
from course_lib.errors import TimingError

ROOFLINE_MARGIN = 1.05  # a ratio above this multiple of the ideal one earns nothing until a person has reviewed it
SHORT_OF_COPY = 2.0
"""On a GPU, the baseline's kernels may take this many times as long as a copy of their bytes. On an H200, PyTorch's
separate kernels for a bias and SiLU took 1.3 times as long in float32, and 1.8 times in bfloat16."""
PASSING_SHARE = 0.6  # part of the measured points for the passing ratio; the full ratio earns all


@dataclass(frozen=True)
class Thresholds:
    """The required ratios, as fractions of the way from 1 to the ideal ratio.

    >>> Thresholds(2.0)
    Thresholds(ideal_ratio=2.0)
    >>> Thresholds(2.0).passing, Thresholds(2.0).full, Thresholds(2.0).bonus
    (1.3, 1.65, 1.85)
    """

    ideal_ratio: float
    """On a GPU, bytes moved by the baseline over the fused minimum: the speedup of a perfect kernel. On a CPU, whose
    cache and arithmetic matter as much, and for a program with matrix products, the ratio of a good answer."""
    margin: float = field(default=ROOFLINE_MARGIN, repr=False)
    """Largest multiple of the ideal ratio that is believed."""

    def __post_init__(self) -> None:
        if not self.ideal_ratio > 1:
            raise TimingError(f"An ideal ratio is above 1, where there is something to gain; got {self.ideal_ratio}.")

    @property
    def passing(self) -> float:
        """Return the least ratio that earns points."""
        return round(1 + 0.30 * (self.ideal_ratio - 1), 4)

    @property
    def full(self) -> float:
        """Return the ratio that earns all points."""
        return round(1 + 0.65 * (self.ideal_ratio - 1), 4)

    @property
    def bonus(self) -> float:
        """Return the ratio that is praised."""
        return round(1 + 0.85 * (self.ideal_ratio - 1), 4)

    @property
    def too_good(self) -> float:
        """Return the ratio that is beyond what memory allows."""
        return self.margin * self.ideal_ratio


@dataclass(frozen=True)
class Speed:
    """A program that the answer must exceed in speed.

    For a `graph` exercise the answer transforms the program; the host rebuilds the result and times it against the
    program, without student code. `graph_of` gets that graph where the answer is not a pass, from the answer and the
    program with its parameters; then `longer` gives the same for a drawn longer program, which is never timed. For a
    `callable` the answer is called with the program's inputs. With `into` it also
    takes the outputs and writes there, and only then can a callable's speed earn points. A returned tensor would have
    to be copied to the grader's memory, and an answer that writes to this memory directly would avoid the copy.

    `shown_only` says why the ratio earns nothing on any machine, where counted cost knows more than the clock.
    `drawn` changes the normal values of each fresh input in place, for a program that is inexact on some of them.
    `on_gpu` replaces all of it on a GPU, which needs larger inputs and has other operators.
    """

    program: Program
    ideal_ratio: float
    into: bool = False
    graph_of: Callable[[Any, Traced], Artifact] | None = None
    longer: "Callable[[Draw], Speed] | None" = None
    drawn: Callable[[torch.Tensor], object] | None = None
    shown_only: str = ""
    on_gpu: "Speed | None" = None

    def __post_init__(self) -> None:
        Thresholds(self.ideal_ratio)

    def on(self, device: str) -> "Speed":
        """Return what is timed on `device`, which is `cpu` or `cuda`."""
        return self.on_gpu if self.on_gpu is not None and device != "cpu" else self

    def thresholds(self, device: str, *, rebuilt: bool) -> Thresholds:
        """Return the required ratios; `rebuilt` says that no student code runs while the answer is timed.

        Then any ratio is believed, since all outputs are verified and the baseline has other costs than its bytes. On a
        CPU, the memory of each intermediate result is new to the process.
        """
        if rebuilt:
            return Thresholds(self.ideal_ratio, math.inf)
        return Thresholds(self.ideal_ratio, ROOFLINE_MARGIN * (1.0 if device == "cpu" else SHORT_OF_COPY))
