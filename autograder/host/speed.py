"""How fast an exercise's answer is held against: a baseline, the ideal ratio, and the points that hang on it.

    speed=Speed(Program("`F.silu(x + b)`", lambda: silu_of_sum, (TensorSpec((4096, 768)), TensorSpec((768,))), 1), 2.0)

is all that an exercise adds. Counted cost needs no such line: it is a check like any other, such as
`kinds.graph.costs`.
"""

from dataclasses import dataclass

from autograder.host.traced import Program
from course_lib.errors import TimingError

SPEED_SHARE = (0.25, 0.40)
"""Of an exercise's points, how much may hang on speed: measured where there is CUDA, counted everywhere."""
ROOFLINE_MARGIN = 1.05  # a ratio beyond so many times the ideal one is looked at by a person, and earns nothing
PASSING_SHARE = 0.6  # of the measured points, for the passing ratio; all of them for the full one


@dataclass(frozen=True)
class Thresholds:
    """The ratios that are asked for, as parts of the way from 1 to the ideal ratio.

    >>> Thresholds(2.0)
    Thresholds(ideal_ratio=2.0)
    >>> Thresholds(2.0).passing, Thresholds(2.0).full, Thresholds(2.0).bonus
    (1.3, 1.65, 1.85)
    """

    ideal_ratio: float  # of bytes moved, baseline to fused minimum: the ratio of times of a perfect kernel

    def __post_init__(self) -> None:
        if not self.ideal_ratio > 1:
            raise TimingError(f"An ideal ratio is above 1, where there is something to gain; got {self.ideal_ratio}.")

    @property
    def passing(self) -> float:
        """The least ratio that earns points."""
        return round(1 + 0.30 * (self.ideal_ratio - 1), 4)

    @property
    def full(self) -> float:
        """The ratio that earns all of them."""
        return round(1 + 0.65 * (self.ideal_ratio - 1), 4)

    @property
    def bonus(self) -> float:
        """The ratio that is praised."""
        return round(1 + 0.85 * (self.ideal_ratio - 1), 4)

    @property
    def too_good(self) -> float:
        """The ratio that memory does not allow."""
        return ROOFLINE_MARGIN * self.ideal_ratio


@dataclass(frozen=True)
class Speed:
    """A program whose speed the answer has to beat.

    For a `graph` exercise the answer transforms the program, and what the host rebuilt from the result is timed
    against it, without student code. For a `callable` the answer is called with the program's inputs; with `into`
    it also takes the outputs and writes there. Only so can a callable's speed earn points: a returned tensor has to be
    copied to the grader's memory, and an answer that finds this memory would save the copy.

    `points` are part of the exercise's and are assessed on CUDA only; elsewhere the ratio is shown.
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
        """The ratios that are asked for."""
        return Thresholds(self.ideal_ratio)
