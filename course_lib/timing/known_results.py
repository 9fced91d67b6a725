"""A measurement whose result was known beforehand, and the growth of one figure with another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SLEEP_TOLERANCE = 0.05  # by which the measured growth of a sleep may differ from the growth that was asked for


@dataclass(frozen=True)
class Check:
    """Hold one measurement whose result was known beforehand."""

    name: str
    passed: bool
    measured: float
    unit: str
    told: str  # what was expected, in words


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return by how much y grows where x grows by 1: the least-squares line.

    >>> slope((1.0, 2.0, 3.0), [5.0, 7.0, 9.0])
    2.0
    """
    middle_x, middle_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    covariance = math.fsum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return covariance / math.fsum((x - middle_x) ** 2 for x in xs)
