"""Define what a clock is, and the wall clock of the CPU."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from course_lib.timing.timings import Cache, ClockName

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
        """Wait until the device is idle and return the wall clock's time, from any beginning."""
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
