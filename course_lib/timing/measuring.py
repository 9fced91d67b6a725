"""`time_callable`: how long a callable takes."""

from collections.abc import Callable
from functools import partial

from course_lib.errors import TimingError
from course_lib.timing.choosing import open_clock
from course_lib.timing.clocks import Call, Clock
from course_lib.timing.sampling import Sampler
from course_lib.timing.timings import Timing

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

    The first call, which may compile, is kept apart; then come samples for `warmup_s`, then up to `max_samples` within
    `budget_s` (at least five, and warm-up at least one). A sample is one call, or as many as last `min_sample_us`. All
    times are for one call, in microseconds.

    `device` is "cpu" or "cuda", by default where the tensors among `args` lie. `clock` is "wall", "cuda_event" or
    "cuda_graph", `cache` "cold" or "warm"; on CUDA "auto" is events and cold, with the wall clock beside. Not yet run
    on CUDA. On a CPU with few cores call `torch.set_num_threads(1)` first: a thread that waits for another makes
    times jump. To say which of two is faster, use `compare`.

    Raises `TimingError` if what was asked for does not exist. What `fn` raises comes through.
    """
    call = checked_call("time_callable", fn, args, max_samples, min_sample_us, warmup_s, budget_s)
    opened = open_clock(device, clock, cache, args)
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
    """Return `fn(*args)` as a call without arguments, or raise a `TimingError` about what was given."""
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
