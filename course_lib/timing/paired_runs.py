"""Compare the speed of two callables by pairs of samples in random order."""

import dataclasses
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.show import format_us
from course_lib.timing.clocks import Clock, Timing
from course_lib.timing.decisions import ALPHA, CONFIDENCE, GUARD, Pair, ratio_noise
from course_lib.timing.measurement import LEAST_SAMPLES, Sampler, checked_call, open_clock
from course_lib.timing.sign_test import SignTest
from course_lib.timing.summaries import median_interval, neighbour_correlation


@dataclass(frozen=True)
class Comparison:
    """Hold the times of two callables, measured in turn. The samples number i of both form a pair."""

    candidate: Timing
    baseline: Timing
    candidate_first: tuple[bool, ...]  # which of the two came first, in each pair
    elapsed_s: float  # of the whole comparison, warm-up included
    seed: int  # of the order

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Return the times of each pair, for `decide_speedup`."""
        return tuple(map(Pair, self.candidate.times_us, self.baseline.times_us))

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return how many times as fast the candidate was, for each pair."""
        return tuple(pair.ratio for pair in self.pairs)

    @property
    def ratio(self) -> float:
        """Return how many times as fast the candidate is: the median of the ratios; above 1, it is faster."""
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval that holds the true median ratio with 95 % confidence, by the sign test."""
        return median_interval(self.ratios, CONFIDENCE)

    @property
    def noise(self) -> float:
        """Return the spread of the ratios around their median, as a fraction."""
        return ratio_noise(self.ratios)

    @property
    def correlation(self) -> float:
        """Return the correlation of neighbouring ratios; beyond ±0.3, the interval is too narrow."""
        return neighbour_correlation(self.ratios)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data, samples included, and the ratio."""
        return {"ratio": self.ratio} | dataclasses.asdict(self)

    def __str__(self) -> str:
        low, high = self.interval
        times = f"{format_us(self.candidate.median_us)} against {format_us(self.baseline.median_us)}"
        notes = [*(f"candidate: {n}" for n in self.candidate.notes), *(f"baseline: {n}" for n in self.baseline.notes)]
        counted = f"{len(self.ratios)} pairs, {self.candidate.clock} clock, {self.candidate.device}"
        known = f"{CONFIDENCE:.0%}: {low:.2f} to {high:.2f}" if math.isfinite(high - low) else "too few pairs"
        head = f"{self.ratio:.2f} times as fast ({known}): {times} ({counted})"
        return "\n".join([head, *notes])

    __repr__ = __str__


def compare(
    candidate: Callable[..., object],
    baseline: Callable[..., object],
    *args: object,
    threshold: float | None = None,
    device: str | None = None,
    clock: str = "auto",
    cache: str = "auto",
    max_pairs: int = 200,
    min_sample_us: float = 200.0,
    warmup_s: float = 0.2,
    budget_s: float = 5.0,
    seed: int = 0,
) -> Comparison:
    """Measure `candidate(*args)` against `baseline(*args)`, in pairs with random order.

        >>> result = compare(lambda: sum(range(10_000)), lambda: sum(range(20_000)), max_pairs=20)
        >>> result.ratio > 1  # the candidate has half as much to do
        True

    The speed of a machine varies over milliseconds and over minutes. Two samples taken one right after the other have
    nearly the same conditions, so their ratio is steadier than either time (Bulej et al., Duet Benchmarking, ICPE
    2020). In random order, neither side always runs second with a warm cache.

    Both are warmed up in turn for `warmup_s`; then come up to `max_pairs` pairs within `budget_s`. With a `threshold`
    and its guard (see `decide_speedup`, which takes `.pairs`), it stops as soon as the pairs decide. The other
    options are those of `time_callable`. Raises `TimingError` for unknown or unavailable options.
    """
    calls = [
        checked_call("compare", fn, args, max_pairs, min_sample_us, warmup_s, budget_s) for fn in (candidate, baseline)
    ]
    test = None if threshold is None else SignTest(cut=threshold * (1 - GUARD), alpha=ALPHA)
    opened = open_clock(device, clock, cache, (candidate, baseline, *args))
    start_us = opened.now_us()
    sides = tuple(Sampler(opened, call, min_sample_us=min_sample_us) for call in calls)
    warm_up_in_turn(opened, sides, warmup_s)
    order = interleave(opened, sides, test, max_pairs=max_pairs, budget_s=budget_s, seed=seed)
    elapsed_s = (opened.now_us() - start_us) / 1e6
    return Comparison(sides[0].timing(), sides[1].timing(), tuple(order), elapsed_s, seed)


def warm_up_in_turn(clock: Clock, sides: Sequence[Sampler], warmup_s: float) -> None:
    """Take samples of each side that are not counted, until the time is over; at least one each."""
    end_us = clock.now_us() + warmup_s * 1e6
    while not sides[0].warmup_readings or clock.now_us() < end_us:
        for side in sides:
            side.warm_up()


def interleave(
    clock: Clock, sides: tuple[Sampler, ...], test: SignTest | None, *, max_pairs: int, budget_s: float, seed: int
) -> list[bool]:
    """Take pairs until there are enough, the time is over, or the test is decided; return where side 0 came first."""
    candidate, baseline = sides
    lot = random.Random(seed)
    end_us = clock.now_us() + budget_s * 1e6
    order: list[bool] = []
    while len(order) < LEAST_SAMPLES or (len(order) < max_pairs and clock.now_us() < end_us):
        order.append(lot.random() < 0.5)
        for side in (candidate, baseline) if order[-1] else (baseline, candidate):
            side.sample()
        if test is not None:
            last_us = [side.readings[-1].time_us / side.calls for side in sides]
            test.add(Pair(*last_us).ratio)
            if test.side:
                break
    return order
