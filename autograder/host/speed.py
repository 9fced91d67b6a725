"""The speed requirement of an exercise: a baseline, the ideal ratio, and the points for speed.

    speed=Speed(Program("`F.silu(x + b)`", lambda: silu_of_sum, (TensorSpec((4096, 768)), TensorSpec((768,))), 1), 2.0)

An exercise adds only this line. Counted cost is an ordinary check, such as `kinds.graph.costs`.
"""

from dataclasses import dataclass

from autograder.host.traced import Program
from course_lib.errors import TimingError

SPEED_SHARE = (0.25, 0.40)
"""The part of an exercise's points that speed may earn: measured on CUDA, counted everywhere."""
ROOFLINE_MARGIN = 1.05  # a ratio above this multiple of the ideal one earns nothing until a person has reviewed it
PASSING_SHARE = 0.6  # part of the measured points for the passing ratio; the full ratio earns all


@dataclass(frozen=True)
class Thresholds:
    """The required ratios, as fractions of the way from 1 to the ideal ratio.

    >>> Thresholds(2.0)
    Thresholds(ideal_ratio=2.0)
    >>> Thresholds(2.0).passing, Thresholds(2.0).full, Thresholds(2.0).bonus
    (1.3, 1.65, 1.85)
    """

    ideal_ratio: float  # bytes moved by the baseline over the fused minimum: the speedup of a perfect kernel

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
        return ROOFLINE_MARGIN * self.ideal_ratio


@dataclass(frozen=True)
class Speed:
    """A program that the answer must exceed in speed.

    For a `graph` exercise the answer transforms the program; the host rebuilds the result and times it against the
    program, without student code. For a `callable` the answer is called with the program's inputs. With `into` it also
    takes the outputs and writes there, and only then can a callable's speed earn points. A returned tensor would have
    to be copied to the grader's memory, and an answer that writes to this memory directly would avoid the copy.

    `points` are part of the exercise's points and are assessed on CUDA only; elsewhere the ratio is shown.
    """

    program: Program
    ideal_ratio: float
    points: float = 0.0
    into: bool = False

    def __post_init__(self) -> None:
        Thresholds(self.ideal_ratio)
        if self.points < 0:
            raise TimingError(f"Speed was given {self.points} points; it expects 0 or more.")

    @property
    def thresholds(self) -> Thresholds:
        """Return the required ratios."""
        return Thresholds(self.ideal_ratio)
