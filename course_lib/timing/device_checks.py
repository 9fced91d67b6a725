"""Check the timer by copies of tensors, and on a CUDA device by sleeps and a side stream; these checks need torch."""

import statistics
from collections.abc import Callable
from functools import partial

import torch

from course_lib.timing.clocks import SLEEP_TOLERANCE, Check, Clock
from course_lib.timing.cuda_clocks import device_sleep
from course_lib.timing.summaries import slope

COPY_BYTES = 32 << 20  # larger than the caches near a core; the larger copy is four times that
COPY_SAMPLES = 9
# A copy of four times the bytes takes four times as long, or longer if a cache holds the smaller one.
COPY_GROWTH = (2.0, 12.0)
DEVICE_SLEEP_CYCLES = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
ROUND_CYCLES = 50_000
SIDE_CYCLES = 2_000_000  # about 1 ms


def check_copy(clock: Clock) -> Check:
    """Check that the time of a large copy grows with its bytes, and return its bandwidth."""
    small_us, large_us = (copy_us(clock, size) for size in (COPY_BYTES, 4 * COPY_BYTES))
    gb_per_s = 2 * 4 * COPY_BYTES / large_us / 1e3  # each byte is read and written
    growth = large_us / small_us
    told = f"GB/s read and written; four times the bytes took {growth:.1f} times as long, expected 2 to 12"
    return Check("copy bandwidth", COPY_GROWTH[0] <= growth <= COPY_GROWTH[1], gb_per_s, "GB/s", told)


def copy_us(clock: Clock, size_bytes: int) -> float:
    """Return the time of the fastest of a few copies of so many bytes."""
    device = clock.device.split()[0]
    source = torch.ones(size_bytes, dtype=torch.int8, device=device)
    target = torch.empty_like(source)
    return min(clock.read(lambda: target.copy_(source), 1).time_us for _ in range(COPY_SAMPLES))


def device_sleeps(rounds: int) -> Callable[[], object]:
    """Return work for a CUDA device: so many short sleeps."""

    def work() -> None:
        for _ in range(rounds):
            device_sleep(ROUND_CYCLES)

    return work


def cuda_checks(clock: Clock) -> list[Check]:
    """Check that times of device sleeps are linear, and that work on a side stream is seen."""
    return [_check_device_sleep(clock), _check_side_stream(clock)]


def _check_device_sleep(clock: Clock) -> Check:
    times_us = [
        min(clock.read(partial(device_sleep, cycles), 1).time_us for _ in range(3)) for cycles in DEVICE_SLEEP_CYCLES
    ]
    us_per_cycle = slope(DEVICE_SLEEP_CYCLES, times_us)
    shortest = DEVICE_SLEEP_CYCLES[0] * us_per_cycle
    told = "MHz, the clock that device sleeps imply; four times the cycles take four times as long"
    return Check("device sleep", abs(times_us[0] / shortest - 1) <= SLEEP_TOLERANCE, 1 / us_per_cycle, "MHz", told)


def _check_side_stream(clock: Clock) -> Check:
    side = torch.cuda.Stream()

    def hide() -> None:
        with torch.cuda.stream(side):
            device_sleep(SIDE_CYCLES)

    readings = [clock.read(hide, 1) for _ in range(5)]
    late_us = statistics.median(reading.late_us for reading in readings)
    caught = late_us > 0.5 * statistics.median(reading.wall_us for reading in readings)
    return Check("side stream", caught, late_us, "µs", "work on another stream is seen after the calls' own is done")
