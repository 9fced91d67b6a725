"""Measure one callable on one clock: choose the clock, the number of calls in a sample, and take samples."""

import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from course_lib.errors import TimingError
from course_lib.show import format_us
from course_lib.timing.clocks import Cache, Call, Clock, ClockName, Reading, Timing, WallClock
from course_lib.timing.reach import device_reached

EMPTY_SAMPLES = 51
# The fastest of these samples estimates the time of a call. The first ones may still be slow, so short calls get
# more.
ESTIMATE_SAMPLES, MOST_ESTIMATE_SAMPLES, ESTIMATE_SHARE = 3, 30, 10.0
MAX_CALLS = 100_000
# Limits beyond which a note is written. All are choices.
OVERHEAD_SHARE = 0.02
LAUNCH_BOUND = 1.3
LATE_SHARE, LATE_LEAST_US = 0.1, 20.0
BEYOND_WALL, LONG_ENOUGH_US = 1.05, 500.0


class Sampler:
    """Take samples of one callable and keep all of them."""

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
        """Take a sample that no statistic uses."""
        self.warmup_readings.append(self._clock.read(self._call, self.calls))

    def sample(self) -> None:
        """Take a sample."""
        self.readings.append(self._clock.read(self._call, self.calls))

    def timing(self) -> Timing:
        """Return the measurement so far."""
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
    """Return the median time of an empty call, which is the overhead of each sample."""
    return statistics.median(clock.read(_nothing, 1).time_us for _ in range(EMPTY_SAMPLES))


def _nothing() -> None:
    pass


def _calls_per_sample(clock: Clock, call: Call, min_sample_us: float) -> int:
    """Return the number of calls that fill a sample; 1 if a single call is long enough.

    Samples are kept short, because a preemption spoils the sample that it hits: one of many short samples, but most
    of a few long ones.
    """
    single_us = _fastest_us(clock, call, 1, lasting_us=ESTIMATE_SHARE * min_sample_us)
    if single_us >= min_sample_us:
        return 1
    few = max(1, min(MAX_CALLS, int(min_sample_us / max(single_us, 0.01)) // 4))
    each_us = _fastest_us(clock, call, few, lasting_us=0.0) / few  # without the clock's own cost
    return max(1, min(MAX_CALLS, math.ceil(min_sample_us / max(each_us, 1e-3))))


def _fastest_us(clock: Clock, call: Call, calls: int, *, lasting_us: float) -> float:
    """Return the time of the fastest of a few samples, or of more if these take less than the given time together."""
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
    if by_events and wall_us > LONG_ENOUGH_US and middle_us > BEYOND_WALL * wall_us:
        told, waits = format_us(middle_us), format_us(wall_us)
        notes.append(f"events tell {told} a sample, which a caller sees end after {waits}: use clock='wall'")
    if calls > 1 and clock.cache is Cache.COLD:
        notes.append(f"calls are so short that {calls} make a sample: the cache is cold for the first of them only")
    return notes


def open_clock(device: str | None, clock: str, cache: str, arguments: Iterable[object] = ()) -> Clock:
    """Return the requested clock; "auto" is events and a cold cache on CUDA, and the wall clock on the CPU.

    Without a device, it is the device of the tensors that `arguments` reach: those given, and those that functions
    among them use. If none lies on CUDA in a process that uses it, "auto" is the wall clock from an idle device to an
    idle device: the program may still move tensors there. Raises `TimingError` for unknown names and impossible
    combinations.
    """
    reached = None if device else device_reached(arguments)
    on_either = device is None and default_device() == "cuda" and not (reached or "").startswith("cuda")
    where = device or ("cuda" if on_either else reached or "cpu")
    if on_either:
        clock = ClockName.WALL if clock == "auto" else clock
        cache = Cache.WARM if cache == "auto" else cache
    names = ["auto", *ClockName] if where.startswith("cuda") else ["auto", ClockName.WALL]
    caches = ["auto", *Cache] if where.startswith("cuda") and clock != ClockName.CUDA_GRAPH else ["auto", Cache.WARM]
    if where.partition(":")[0] not in ("cpu", "cuda"):
        raise TimingError(f"The timer got device={where!r}; it measures on 'cpu' and 'cuda'.")
    _check("clock", clock, names, where)
    _check("cache", cache, caches, f"{where} with this clock")
    if where.startswith("cpu"):
        return WallClock()
    from course_lib.timing.cuda_clocks import cuda_clock  # loads torch, which timing on the CPU does not need

    opened = cuda_clock(
        where,
        ClockName.CUDA_EVENT if clock == "auto" else ClockName(clock),
        Cache.COLD if cache == "auto" else Cache(cache),
    )
    if on_either and reached and opened.name is ClockName.WALL:
        opened.device = reached
    return opened


def _check(what: str, given: str, known: list[str], where: str) -> None:
    if given not in known:
        listed = ", ".join(repr(str(name)) for name in known)
        raise TimingError(f"The timer got {what}={given!r}; on {where} it knows {listed}.")


def default_device() -> str:
    """Return "cuda" if this process uses it, else "cpu"."""
    torch = sys.modules.get("torch")  # a program that uses tensors has loaded it
    return "cuda" if torch is not None and torch.cuda.is_initialized() else "cpu"


LEAST_SAMPLES = 5


def time_callable(
    fn: Callable[..., object],
    *args: object,
    device: str | None = None,
    clock: str = "auto",
    cache: str = "auto",
    max_samples: int = 100,
    min_sample_us: float = 200.0,
    warmup_s: float = 0.1,
    budget_s: float = 1.0,
) -> Timing:
    """Measure how long `fn(*args)` takes, and keep every sample.

        >>> timing = time_callable(sum, range(100_000), max_samples=20, warmup_s=0.0)
        >>> timing.min_us <= timing.median_us <= timing.max_us, timing.clock.value, timing.cache.value
        (True, 'wall', 'warm')

    The first call, which may compile, is stored separately. Then follow warm-up samples for `warmup_s` (at least one),
    and up to `max_samples` samples within `budget_s` (at least five). A sample is one call, or as many calls as last
    `min_sample_us`. All times are for one call, in microseconds.

    `device` is "cpu" or "cuda", by default where the tensors lie that `fn` gets or uses. `clock` is "wall",
    "cuda_event" or "cuda_graph", `cache` "cold" or "warm"; on CUDA "auto" is events and cold, with the wall clock
    beside. On a CPU with few cores call `torch.set_num_threads(1)` first: a thread that waits for
    another makes times jump. To decide which of two is faster, use `compare`.

    Raises `TimingError` for unknown or unavailable options. Exceptions of `fn` propagate.
    """
    call = checked_call("time_callable", fn, args, max_samples, min_sample_us, warmup_s, budget_s)
    opened = open_clock(device, clock, cache, (fn, *args))
    sampler = Sampler(opened, call, min_sample_us=min_sample_us)
    take_samples(opened, sampler, max_samples=max_samples, warmup_s=warmup_s, budget_s=budget_s)
    return sampler.timing()


def take_samples(clock: Clock, sampler: Sampler, *, max_samples: int, warmup_s: float, budget_s: float) -> None:
    """Warm up, then take samples until there are enough or the time is over."""
    end_us = clock.now_us() + warmup_s * 1e6
    sampler.warm_up()
    while clock.now_us() < end_us:
        sampler.warm_up()
    end_us = clock.now_us() + budget_s * 1e6
    while len(sampler.readings) < LEAST_SAMPLES or (len(sampler.readings) < max_samples and clock.now_us() < end_us):
        sampler.sample()


def checked_call(
    who: str, fn: object, args: tuple[object, ...], most: int, min_sample_us: float, warmup_s: float, budget_s: float
) -> Call:
    """Return `fn(*args)` as a call without arguments; raise `TimingError` if `fn` is not callable."""
    if not callable(fn):
        raise TimingError(f"{who} got a {type(fn).__name__}; it expects a callable, with its arguments after it.")
    if most < LEAST_SAMPLES:
        raise TimingError(f"{who} was asked for at most {most} samples; it takes at least {LEAST_SAMPLES}.")
    if min_sample_us < 0 or warmup_s < 0 or budget_s <= 0:
        raise TimingError(
            f"{who} got min_sample_us={min_sample_us}, warmup_s={warmup_s}, budget_s={budget_s}; "
            "it expects times that are not negative, and a budget above 0."
        )
    return partial(fn, *args) if args else fn
