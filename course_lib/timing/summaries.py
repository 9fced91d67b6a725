"""Summarise noisy numbers by medians and ranks: intervals, spread and correlation.

A preempted call takes ten times as long as the others, and changes a mean by more than the effects that are measured
here. The module uses only the standard library, so that a judge without torch can use it.
"""

import itertools
import math
import statistics
from collections.abc import Sequence

MAD_TO_SD = 1.4826  # a normal distribution's standard deviation over its median absolute deviation


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval that holds the true median with at least this confidence, by the sign test.

        >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        (1.0, 6.0)

    Nothing is assumed about the distribution: each value lies above its median with probability one half, so the
    number of values below the median is binomial, and the interval runs between two order statistics (Hettmansperger
    and McKean, Robust Nonparametric Statistical Methods, chapter 1). The values must be independent. With too few
    values for this confidence, the interval is infinite.
    """
    ordered, count = sorted(values), len(values)
    cut_off, tail = 0, 0
    for below in range(count):
        tail += math.comb(count, below)
        if 2 * tail > (1 - confidence) * 2**count:
            break
        cut_off = below + 1
    return (-math.inf, math.inf) if cut_off == 0 else (ordered[cut_off - 1], ordered[count - cut_off])


def spread(values: Sequence[float]) -> float:
    """Return the spread of values, as a standard deviation that is robust to outliers.

        >>> round(spread([10.0, 11.0, 12.0, 13.0, 1000.0]), 2)
        1.48

    It is 1.4826 times the median distance from the median, in the unit of the values.
    """
    middle = statistics.median(values)
    return MAD_TO_SD * statistics.median(abs(value - middle) for value in values)


def interquartile_range(values: Sequence[float]) -> float:
    """Return the width of the middle half of the values, in their unit; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return quarters[2] - quarters[0]


def neighbour_correlation(values: Sequence[float]) -> float:
    """Return the lag-1 autocorrelation of the ranks of the values, from −1 to 1.

        >>> neighbour_correlation([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) > 0.5
        True

    Ranks are used, because one outlier would otherwise hide every other dependence. Independent values give 0 within
    about
    one over the square root of their number. Fewer than three values, or equal ones, give 0.
    """
    if len(values) < 3:
        return 0.0
    ranks = _ranks(values)
    middle = statistics.fmean(ranks)
    around = [rank - middle for rank in ranks]
    total = math.fsum(d * d for d in around)
    return math.fsum(a * b for a, b in itertools.pairwise(around)) / total if total else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the place of each value in sorted order; equal values share the mean of their places."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the slope of the least-squares line: the growth of y when x grows by 1.

    >>> slope((1.0, 2.0, 3.0), [5.0, 7.0, 9.0])
    2.0
    """
    middle_x, middle_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    covariance = math.fsum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return covariance / math.fsum((x - middle_x) ** 2 for x in xs)
