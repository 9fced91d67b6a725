"""Define clocks and measurements: what a clock is, the wall clock of the CPU, and the record of a measurement."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from course_lib.errors import TimingError
from course_lib.show import format_us
from course_lib.timing.summaries import interquartile_range

SLEEP_TOLERANCE = 0.05  # allowed difference between the measured and the requested growth of a sleep, as a fraction


class ClockName(StrEnum):
    """Name the way in which a sample is timed."""

    WALL = "wall"  # the processor's clock, from an idle device to an idle device: the time that a caller waits
    CUDA_EVENT = "cuda_event"  # two events around the calls, while the host runs ahead: the time that the device works
    CUDA_GRAPH = "cuda_graph"  # two events around a replayed CUDA graph: the same without any launch by the host


class Cache(StrEnum):
    """Name the state of the device's cache at the beginning of a sample."""

    COLD = "cold"  # the last-level cache was overwritten just before
    WARM = "warm"  # the cache is as the previous call left it


@dataclass(frozen=True)
class Timing:
    """Hold all times of a callable, in microseconds for one call."""

    times_us: tuple[float, ...]  # one a sample, in order
    wall_times_us: tuple[float, ...]  # the same by wall clock until the device is idle; on a CPU, the same numbers
    warmup_times_us: tuple[float, ...]  # samples before the device was warm; no statistic uses them
    first_call_us: float  # the very first call, including any compilation; wall clock
    calls_per_sample: int
    overhead_us: float  # the time of a sample of an empty call, included in the times
    device: str
    clock: ClockName
    cache: Cache  # the actual state, which may differ from the requested one
    notes: tuple[str, ...] = ()  # warnings about the reliability of the numbers

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

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data, samples included."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        how = f"{len(self.times_us)} samples of {self.calls_per_sample}, {self.clock} clock, {self.cache} cache"
        middle = f"{format_us(self.median_us)} ± {format_us(self.spread_us / 2)}"
        return "\n".join([f"{middle} a call ({how}, {self.device})", *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__  # the samples are in the fields; a notebook shows the summary


@dataclass(frozen=True)
class Check:
    """Hold one measurement whose result was known beforehand."""

    name: str
    passed: bool
    measured: float
    unit: str
    told: str  # what was expected, in words


Call = Callable[[], object]


@dataclass(frozen=True)
class Reading:
    """Hold one sample, in microseconds for all its calls together."""

    time_us: float  # by the clock
    wall_us: float  # until the device was idle, by wall clock
    late_us: float = 0.0  # how long other streams still worked after the stream of the calls


class Clock(Protocol):
    """Take samples on one device."""

    name: ClockName
    cache: Cache
    device: str

    def read(self, call: Call, calls: int) -> Reading:
        """Run `call` `calls` times and return how long this took."""
        ...

    def now_us(self) -> float:
        """Wait until the device is idle and return the wall clock's time, from an arbitrary origin."""
        ...


class WallClock:
    """Measure by the clock of the processor, for programs that run on the CPU.

    `time.perf_counter_ns` is monotonic and does not round. The cache is warm, since there is no reliable way to
    overwrite it on every CPU.
    """

    name = ClockName.WALL
    cache = Cache.WARM
    device = "cpu"

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns  # stored when the clock is made, so that the timed program cannot replace it

    def read(self, call: Call, calls: int) -> Reading:
        """Run the calls between two readings of the clock."""
        now_ns, rounds = self._now_ns, range(calls)
        start_ns = now_ns()
        for _ in rounds:
            call()
        elapsed_us = (now_ns() - start_ns) / 1e3
        return Reading(elapsed_us, elapsed_us)

    def now_us(self) -> float:
        """Return the time; a CPU does nothing asynchronously."""
        return self._now_ns() / 1e3
