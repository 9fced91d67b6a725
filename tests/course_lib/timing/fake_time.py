"""A clock that stands still, and calls that move it: timing without waiting, and without a machine that is busy."""

import itertools
from collections.abc import Callable, Iterable

from course_lib.timing.clocks import WallClock


class FakeTime:
    """Nanoseconds that pass only when somebody works."""

    def __init__(self) -> None:
        self.now_ns = 0

    def read_ns(self) -> int:
        """Return the time."""
        return self.now_ns

    def clock(self) -> WallClock:
        """Return a wall clock of this time."""
        return WallClock(self.read_ns)

    def work(self, *times_us: float) -> Callable[[], None]:
        """Return a call that takes these times in turn, the last one ever after."""
        return self.work_from(itertools.chain(times_us, itertools.repeat(times_us[-1])))

    def work_from(self, times_us: Iterable[float]) -> Callable[[], None]:
        """Return a call that takes one of these times after another."""
        upcoming = iter(times_us)

        def call() -> None:
            self.now_ns += round(next(upcoming) * 1e3)

        return call
