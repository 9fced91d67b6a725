"""Check whether the timer can be trusted on this machine, by measuring times and ratios that are known beforehand."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib.timing.clocks import SLEEP_TOLERANCE, Check, Clock, ClockName
from course_lib.timing.environment import Environment, environment
from course_lib.timing.measurement import default_device, empty_call_us, open_clock
from course_lib.timing.paired_runs import compare
from course_lib.timing.summaries import slope

EMPTY_LIMIT_US = 4.0  # 2 % of the shortest sample that `time_callable` takes by default
# Events count in steps of half a microsecond, and a pair of them takes a few. 4 % of the shortest sample is the guard
# of `decide_speedup`, beyond which the cost could change a verdict.
EMPTY_LIMIT_OF_EVENTS_US = 8.0
SHORTEST_SAMPLE_US = 200.0
SLEEPS_S = (0.004, 0.008, 0.016, 0.032)
RATIO_TOLERANCE = 0.04  # the guard of `decide_speedup`
SMALL, LARGE = 10, 12


@dataclass(frozen=True)
class SelfCheck:
    """Hold all checks, and the machine."""

    checks: tuple[Check, ...]
    environment: Environment

    @property
    def passed(self) -> bool:
        """Tell whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return dataclasses.asdict(self) | {"passed": self.passed}

    def __str__(self) -> str:
        rows = [
            f"{'ok    ' if c.passed else 'FAILED'}  {c.name:16}  {c.measured:10.4g} {c.unit:5}  {c.told}"
            for c in self.checks
        ]
        return "\n".join([*rows, str(self.environment)])

    __repr__ = __str__


def selfcheck(*, device: str | None = None) -> SelfCheck:
    """Measure an empty call, sleeps, a known ratio, a program against itself and a copy, and check the results.

        >>> [check.name for check in selfcheck(device="cpu").checks]
        ['empty call', 'sleep linearity', 'known ratio', 'same thing twice', 'copy bandwidth']

    On the CPU it takes under two seconds. On CUDA there are two more checks: device sleeps are linear, and
    work on a side stream is detected. Raises `TimingError` for a device that is neither.
    """
    from course_lib.timing import device_checks  # loads torch

    clock = open_clock(device or default_device(), "auto", "auto")
    checks = [check_empty_call(clock), check_sleep_linearity(time.sleep, clock.now_us)]
    if clock.device.startswith("cuda"):
        checks += [*check_ratios("cuda", device_checks.device_sleeps), *device_checks.cuda_checks(clock)]
    else:
        checks += check_ratios("cpu", sums)
    checks.append(device_checks.check_copy(clock))
    return SelfCheck(tuple(checks), environment())


def check_empty_call(clock: Clock) -> Check:
    """Check that the overhead of measuring is small compared with a sample."""
    cost_us = empty_call_us(clock)
    limit_us = EMPTY_LIMIT_US if clock.name is ClockName.WALL else EMPTY_LIMIT_OF_EVENTS_US
    told = f"at most {limit_us:g} µs, {limit_us / SHORTEST_SAMPLE_US:.0%} of the shortest sample"
    return Check("empty call", cost_us <= limit_us, cost_us, "µs", told)


def check_sleep_linearity(sleep: Callable[[float], None], now_us: Callable[[], float]) -> Check:
    """Check that measured sleeps grow like the requested sleeps."""
    measured_s = [min(_sleep_s(sleep, now_us, asked_s) for _ in range(3)) for asked_s in SLEEPS_S]
    growth = slope(SLEEPS_S, measured_s)
    told = f"1 ± {SLEEP_TOLERANCE:g}: seconds measured a second slept, waking up late left out"
    return Check("sleep linearity", abs(growth - 1) <= SLEEP_TOLERANCE, growth, "", told)


def _sleep_s(sleep: Callable[[float], None], now_us: Callable[[], float], asked_s: float) -> float:
    start_us = now_us()
    sleep(asked_s)
    return (now_us() - start_us) / 1e6


def check_ratios(device: str, work: Callable[[int], Callable[[], object]]) -> list[Check]:
    """Check the ratio of ten rounds of work to twelve, and of ten to ten."""
    known = compare(work(SMALL), work(LARGE), device=device, max_pairs=101, warmup_s=0.05, budget_s=0.5)
    same = compare(work(SMALL), work(SMALL), device=device, max_pairs=101, warmup_s=0.05, budget_s=0.5)
    asked = LARGE / SMALL
    return [
        Check("known ratio", _close(known.ratio, asked), known.ratio, "", f"{asked:g} within {RATIO_TOLERANCE:.0%}"),
        Check("same thing twice", _close(same.ratio, 1.0), same.ratio, "", f"1 within {RATIO_TOLERANCE:.0%}"),
    ]


def _close(measured: float, expected: float) -> bool:
    return abs(measured / expected - 1) <= RATIO_TOLERANCE


def sums(rounds: int) -> Callable[[], object]:
    """Return a call that computes so many sums on the processor."""
    return lambda: [sum(range(2_000)) for _ in range(rounds)]
