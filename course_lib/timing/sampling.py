"""Samples of one callable on one clock: how many calls make a sample, and what is said about them afterwards."""

import math
import statistics
from collections.abc import Sequence

from course_lib.timing.clocks import Call, Clock, Reading
from course_lib.timing.timings import Cache, ClockName, Timing, format_us

EMPTY_SAMPLES = 51
# Of these samples the fastest estimates how long a call takes. The first ones may still be slow, so short calls get
# more.
ESTIMATE_SAMPLES, MOST_ESTIMATE_SAMPLES, ESTIMATE_SHARE = 3, 30, 10.0
MAX_CALLS = 100_000
# From where on a note is written. All are choices.
OVERHEAD_SHARE = 0.02
LAUNCH_BOUND = 1.3
LATE_SHARE, LATE_LEAST_US = 0.1, 20.0


class Sampler:
    """Takes samples of one callable and keeps them all."""

    def __init__(self, clock: Clock, call: Call, *, min_sample_us: float) -> None:
        self._clock = clock
        self._call = call
        start_us = clock.now_us()
        call()
        self.first_call_us = clock.now_us() - start_us
        self.calls = _calls_per_sample(clock, call, min_sample_us)
        self.readings: list[Reading] = []
        self.warmup_readings: list[Reading] = []

    def warm_up(self) -> None:
        """Take a sample that no statistic will use."""
        self.warmup_readings.append(self._clock.read(self._call, self.calls))

    def sample(self) -> None:
        """Take a sample."""
        self.readings.append(self._clock.read(self._call, self.calls))

    def timing(self) -> Timing:
        """Return what was measured so far."""
        overhead_us = empty_call_us(self._clock)
        return Timing(
            times_us=self._per_call([reading.time_us for reading in self.readings]),
            wall_times_us=self._per_call([reading.wall_us for reading in self.readings]),
            warmup_times_us=self._per_call([reading.time_us for reading in self.warmup_readings]),
            first_call_us=self.first_call_us,
            calls_per_sample=self.calls,
            overhead_us=overhead_us,
            device=self._clock.device,
            clock=self._clock.name,
            cache=Cache.WARM if self.calls > 1 else self._clock.cache,
            notes=tuple(_notes(self._clock, self.readings, self.calls, overhead_us)),
        )

    def _per_call(self, times_us: Sequence[float]) -> tuple[float, ...]:
        return tuple(time_us / self.calls for time_us in times_us)


def empty_call_us(clock: Clock) -> float:
    """Return what a sample of a call that does nothing takes: what the measuring itself adds to each sample."""
    return statistics.median(clock.read(_nothing, 1).time_us for _ in range(EMPTY_SAMPLES))


def _nothing() -> None:
    """Do nothing."""


def _calls_per_sample(clock: Clock, call: Call, min_sample_us: float) -> int:
    """Return how many calls last as long as a sample should; one wherever a call is long enough.

    Samples of single calls, because a preemption spoils the sample that it hits: many short samples lose one, a few
    long ones lose all.
    """
    single_us = _fastest_us(clock, call, 1, lasting_us=ESTIMATE_SHARE * min_sample_us)
    if single_us >= min_sample_us:
        return 1
    few = max(1, min(MAX_CALLS, int(min_sample_us / max(single_us, 0.01)) // 4))
    each_us = _fastest_us(clock, call, few, lasting_us=0.0) / few  # without the clock's own cost
    return max(1, min(MAX_CALLS, math.ceil(min_sample_us / max(each_us, 1e-3))))


def _fastest_us(clock: Clock, call: Call, calls: int, *, lasting_us: float) -> float:
    """Return the fastest of a few samples, or of more if those few do not last this long together."""
    times_us: list[float] = []
    while len(times_us) < ESTIMATE_SAMPLES or (len(times_us) < MOST_ESTIMATE_SAMPLES and sum(times_us) < lasting_us):
        times_us.append(clock.read(call, calls).time_us)
    return min(times_us)


def _notes(clock: Clock, readings: Sequence[Reading], calls: int, overhead_us: float) -> list[str]:
    middle_us = statistics.median(reading.time_us for reading in readings)
    wall_us = statistics.median(reading.wall_us for reading in readings)
    late_us = statistics.median(reading.late_us for reading in readings)
    by_events = clock.name is not ClockName.WALL
    notes = []
    if overhead_us > OVERHEAD_SHARE * middle_us:
        share = f"{format_us(overhead_us)} of {format_us(middle_us)}"
        notes.append(f"measuring itself takes {share} a sample: ask for longer samples")
    if by_events and late_us > max(LATE_LEAST_US, LATE_SHARE * wall_us):
        late = f"other streams worked {format_us(late_us)} longer than this one"
        notes.append(f"{late}, which events do not see: use clock='wall'")
    elif by_events and wall_us > LAUNCH_BOUND * middle_us:
        waits, works = format_us(wall_us / calls), format_us(middle_us / calls)
        notes.append(f"launch-bound: a caller waits {waits} a call, the device works {works}")
    if calls > 1 and clock.cache is Cache.COLD:
        notes.append(f"calls are so short that {calls} make a sample: the cache is cold for the first of them only")
    return notes
