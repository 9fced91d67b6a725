"""Medians, ranks and intervals of numbers whose answer is known."""

import math
import random
import statistics

import pytest

from course_lib.timing.summaries import interquartile_range, median_interval, neighbour_correlation, spread


@pytest.mark.parametrize(
    ("count", "places"),
    [(6, (0, 5)), (9, (1, 7)), (10, (1, 8)), (100, (39, 60))],  # the table of the sign test at 95 %
)
def test_the_interval_of_a_median_lies_between_the_tabulated_order_statistics(count, places):
    assert median_interval(range(count)) == places


def test_five_values_are_too_few_for_95_percent():
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (-math.inf, math.inf)


def test_the_interval_holds_the_true_median_as_often_as_it_says():
    lot = random.Random(1)
    held = 0
    for _ in range(1000):
        low, high = median_interval([math.exp(lot.gauss(0, 1)) for _ in range(30)])
        held += low <= 1.0 <= high

    assert 940 <= held <= 980  # 95.7 % by the binomial distribution


def test_one_wild_value_moves_neither_spread_nor_quartiles():
    quiet = [100.0 + i for i in range(11)]
    wild = [*quiet[:-1], 1e9]

    assert spread(wild) == spread(quiet)
    assert interquartile_range(wild) == interquartile_range(quiet) == 5.0
    assert statistics.stdev(wild) > 1e8


def test_the_spread_of_normal_values_is_their_standard_deviation():
    lot = random.Random(2)

    assert spread([lot.gauss(0, 3) for _ in range(4000)]) == pytest.approx(3, rel=0.06)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [5.0] * 10])
def test_values_too_few_or_all_equal_do_not_correlate(values):
    assert neighbour_correlation(values) == 0.0


def test_neighbours_correlate_in_a_drift_and_not_in_noise():
    lot = random.Random(3)
    noise = [lot.gauss(0, 1) for _ in range(200)]
    noise[50] = 1e9  # hides nothing, since ranks are compared

    assert abs(neighbour_correlation(noise)) < 0.2
    assert neighbour_correlation([value + i / 20 for i, value in enumerate(noise)]) > 0.5
    assert neighbour_correlation([(-1) ** i + value / 10 for i, value in enumerate(noise)]) < -0.3
