"""Hold the result of one measurement: every sample, and how it was taken."""

import dataclasses
import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from course_lib.errors import TimingError
from course_lib.show import format_us
from course_lib.timing.summaries import interquartile_range


class ClockName(StrEnum):
    """Name the way in which a sample is timed."""

    WALL = "wall"  # the processor's clock, from an idle device to an idle device: what a caller waits for
    CUDA_EVENT = "cuda_event"  # two events around the calls, while the host runs ahead: what the device works
    CUDA_GRAPH = "cuda_graph"  # two events around a replayed CUDA graph: the same without any launch by the host


class Cache(StrEnum):
    """Name the state of the device's cache at the beginning of a sample."""

    COLD = "cold"  # the last-level cache was overwritten just before
    WARM = "warm"  # whatever the call before left there


@dataclass(frozen=True)
class Timing:
    """Hold all times of a callable, in microseconds for one call."""

    times_us: tuple[float, ...]  # one a sample, in order
    wall_times_us: tuple[float, ...]  # the same by wall clock until the device is idle; on a CPU, the same numbers
    warmup_times_us: tuple[float, ...]  # samples before the device was warm; no statistic uses them
    first_call_us: float  # the very first call, with whatever it compiled; wall clock
    calls_per_sample: int
    overhead_us: float  # what a sample of an empty call takes, included in the times
    device: str
    clock: ClockName
    cache: Cache  # as it was, which is not always as it was asked for
    notes: tuple[str, ...] = ()  # what makes these numbers mean less than they seem to

    def __post_init__(self) -> None:
        """Raise `TimingError` for a measurement without a sample."""
        if not self.times_us:
            raise TimingError("A Timing got no samples; it expects at least one.")

    @property
    def median_us(self) -> float:
        """Return the median of the samples."""
        return statistics.median(self.times_us)

    @property
    def min_us(self) -> float:
        """Return the fastest sample."""
        return min(self.times_us)

    @property
    def max_us(self) -> float:
        """Return the slowest sample."""
        return max(self.times_us)

    @property
    def spread_us(self) -> float:
        """Return the width of the middle half of the samples."""
        return interquartile_range(self.times_us)

    @property
    def median_wall_us(self) -> float:
        """Return the median of the wall-clock samples."""
        return statistics.median(self.wall_times_us)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data, samples included."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        how = f"{len(self.times_us)} samples of {self.calls_per_sample}, {self.clock} clock, {self.cache} cache"
        middle = f"{format_us(self.median_us)} ± {format_us(self.spread_us / 2)}"
        return "\n".join([f"{middle} a call ({how}, {self.device})", *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__  # the samples are in the fields; a notebook shows the summary
