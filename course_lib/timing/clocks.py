"""How one sample is timed, whatever is timed and wherever it runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from course_lib.timing.timings import Cache, ClockName

Call = Callable[[], object]


@dataclass(frozen=True)
class Reading:
    """One sample, in microseconds for all its calls together."""

    time_us: float  # by the clock
    wall_us: float  # until the device was idle, by wall clock
    late_us: float = 0.0  # for how long other streams still worked when the calls' own stream was done


class Clock(Protocol):
    """Takes samples on one device."""

    name: ClockName
    cache: Cache
    device: str

    def read(self, call: Call, calls: int) -> Reading:
        """Run `call` as often as `calls` says and return how long that took."""
        ...

    def now_us(self) -> float:
        """Wait until the device is idle and return the wall clock's time, from any beginning."""
        ...


class WallClock:
    """The processor's clock, for programs that run on the CPU.

    `time.perf_counter_ns` never goes back and has no rounding of its own. The cache is warm: what the call before left
    there is still there, since nothing can be overwritten reliably on every CPU.
    """

    name = ClockName.WALL
    cache = Cache.WARM
    device = "cpu"

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns  # taken when the clock is made, so that what is timed cannot put another in its place

    def read(self, call: Call, calls: int) -> Reading:
        """Run the calls between two looks at the clock."""
        now_ns, rounds = self._now_ns, range(calls)
        start_ns = now_ns()
        for _ in rounds:
            call()
        elapsed_us = (now_ns() - start_ns) / 1e3
        return Reading(elapsed_us, elapsed_us)

    def now_us(self) -> float:
        """Return the time; nothing runs behind the host's back here."""
        return self._now_ns() / 1e3
