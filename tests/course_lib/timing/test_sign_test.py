"""The sign test by e-values: its numbers against the integral, its error rates by simulation."""

import math
import random
from collections.abc import Iterator

import pytest

from course_lib.timing.sign_test import SignTest, least_pairs, log_e_value

TRIALS, PAIRS = 2000, 300


def integral(positive: int, count: int) -> float:
    """Return the e-value as the integral over p that its formula stands for, by the midpoint rule."""
    steps = 20_000
    points = (0.5 + (i + 0.5) / (2 * steps) for i in range(steps))
    return sum(2 * p**positive * (1 - p) ** (count - positive) * 2**count for p in points) / (2 * steps)


def signs(chance: float, seed: int) -> Iterator[float]:
    """Yield ratios that lie above 1 with this chance."""
    lot = random.Random(seed)
    while True:
        yield 1.1 if lot.random() < chance else 0.9


def share_of_sides(chance: float, alpha: float) -> dict[int, float]:
    """Return how often a test looked at after each of PAIRS pairs ended above (1), below (−1) and undecided (0)."""
    sides = {-1: 0, 0: 0, 1: 0}
    for trial in range(TRIALS):
        test = SignTest(cut=1.0, alpha=alpha)
        for _, ratio in zip(range(PAIRS), signs(chance, trial), strict=False):
            test.add(ratio)
        sides[test.side] += 1
    return {side: found / TRIALS for side, found in sides.items()}


@pytest.mark.parametrize(("positive", "count"), [(0, 0), (0, 1), (1, 1), (3, 5), (9, 9), (20, 40), (2, 30)])
def test_the_formula_is_the_integral(positive, count):
    assert math.exp(log_e_value(positive, count)) == pytest.approx(integral(positive, count), rel=1e-5)


@pytest.mark.parametrize("count", range(12))
def test_a_fair_coin_gains_nothing_on_average(count):
    mean = sum(math.comb(count, k) * math.exp(log_e_value(k, count)) for k in range(count + 1)) / 2**count

    assert mean == pytest.approx(1.0)


@pytest.mark.parametrize(("alpha", "pairs"), [(0.05, 7), (0.01, 9), (0.001, 13)])
def test_so_many_equal_signs_are_needed_at_least(alpha, pairs):
    assert least_pairs(alpha) == pairs


@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_looking_after_every_pair_is_wrong_no_more_often_than_promised(alpha):
    shares = share_of_sides(0.5, alpha)

    # The promise is alpha; three standard errors of TRIALS trials are left for chance.
    room = 3 * math.sqrt(alpha * (1 - alpha) / TRIALS)
    assert 0 < shares[1] <= alpha + room
    assert 0 < shares[-1] <= alpha + room


def test_a_clear_side_is_found():
    assert share_of_sides(0.75, 0.01)[1] > 0.99
    assert share_of_sides(0.25, 0.01)[-1] > 0.99


def test_an_ordinary_test_looked_at_after_every_pair_is_wrong_far_more_often():
    """What the e-value is for: the same looks, with a p-value below 1 % as the reason to stop."""
    wrong = 0
    for trial in range(300):
        above = 0
        for count, ratio in zip(range(1, PAIRS + 1), signs(0.5, trial), strict=False):
            above += ratio > 1
            p_value = math.erfc(
                (above - count / 2) / math.sqrt(count / 2)
            )  # two-sided normal approximation, halved below
            if count >= 9 and p_value / 2 < 0.01:
                wrong += 1
                break

    assert wrong / 300 > 0.03


def test_a_decided_test_does_not_count_what_comes_later():
    test = SignTest(cut=1.0, alpha=0.01)
    for ratio in [2.0] * 9 + [0.5] * 100:
        test.add(ratio)

    assert (test.side, test.count) == (1, 9)
    assert test.e_above > 100 > test.e_below


def test_a_ratio_at_the_cut_speaks_for_neither_side():
    test = SignTest(cut=1.0, alpha=0.01)
    for _ in range(500):
        test.add(1.0)

    assert test.side == 0
    assert test.e_above < 1
    assert test.e_below < 1
