"""Measure how many times as fast several versions are, by the size of their inputs, and draw where they cross 1."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from course_lib.errors import ProfilingError
from course_lib.profiling.plots import Plot
from course_lib.show import Table, format_us
from course_lib.timing import compare

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FLOOR = 640, 300, 60, 500, 30, 250
COLOURS = ("#1f5a99", "#b0491f", "#2f7d4f")
DASHES = ("", "7 4", "2 3")  # meaning is never by colour alone
LEAST_PAIRS = 15  # with fewer, an interval reaches from the slowest pair to the fastest
MOST_LABELS = 7
CLEAR = 0.03  # a ratio nearer to 1 is called neither faster nor slower


@dataclass(frozen=True)
class Point:
    """Hold one version at one size: its ratio to the baseline with a 95 % interval; above 1 it is faster."""

    size: int
    ratio: float
    low: float
    high: float
    time_us: float
    baseline_us: float


@dataclass(frozen=True, repr=False)
class SpeedBySize:
    """Hold the measured points of each version; a notebook shows them as a plot, and `print` as a table."""

    size_name: str
    points: Mapping[str, tuple[Point, ...]]
    device: str

    def crossing(self, name: str) -> str:
        """Return in words between which measured sizes a version becomes faster than the baseline, by intervals."""
        points = self.points[name]
        slower = [point.size for point in points if point.high < 1 - CLEAR]
        faster = [point.size for point in points if point.low > 1 + CLEAR]
        if not faster:
            return f"{name} is not shown to be faster at any size"
        if not slower:
            return f"{name} is not shown to be slower at any size"
        if max(slower) > min(faster):
            return f"{name} crosses 1 more than once"
        return f"{name} becomes faster between {max(slower):,} and {min(faster):,} {self.size_name}"

    def __str__(self) -> str:
        rows = tuple(
            (name, f"{p.size:,}", format_us(p.baseline_us), format_us(p.time_us), f"{p.ratio:.2f}", _interval(p))
            for name, points in self.points.items()
            for p in points
        )
        columns = ("version", self.size_name, "eager", "time", "ratio", "95 %")
        crossings = ". ".join(map(self.crossing, self.points))
        return f"{Table(columns, rows, numbers=columns[1:])}\n{crossings} ({self.device})."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = html.escape(f"{'. '.join(map(self.crossing, self.points))} ({self.device}).")
        return f"{Plot(self._svg(), str(self))._repr_html_()}<p>{words}</p>"

    def _svg(self) -> str:
        every = [point for points in self.points.values() for point in points]
        ends = _ends([point.ratio for point in every])
        sizes = sorted({point.size for point in every})
        lines = "".join(
            _line(name, points, sizes, ends, number) for number, (name, points) in enumerate(self.points.items())
        )
        ticks = "".join(
            f'<text x="{_x(size, sizes):.1f}" y="{FLOOR + 18}" text-anchor="middle">{size:,}</text>' for size in sizes
        )
        ratios = "".join(
            f'<path d="M{LEFT} {_y(2.0**power, ends):.1f}H{RIGHT + 10}" stroke="{"#ddd" if power else "#444"}"/>'
            f'<text x="{LEFT - 6}" y="{_y(2.0**power, ends) + 4:.1f}" text-anchor="end">'
            f"{2.0**power:g}{'' if power else ' eager'}</text>"
            for power in _powers(ends)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/><path d="M{LEFT} {TOP - 10}V{FLOOR}H{RIGHT + 10}" '
            f'fill="none" stroke="#444"/>{ratios}{ticks}{lines}'
            f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
            f"{html.escape(self.size_name)}; above 1 is faster than eager; bars: 95 % intervals</text></svg>"
        )


def speed_by_size(
    versions: Mapping[str, Callable[..., object]],
    eager: Callable[..., object],
    size_name: str,
    inputs: Mapping[int, Sequence[torch.Tensor]],
    *,
    budget_s: float = 0.25,
) -> SpeedBySize:
    """Measure each of `versions` against `eager` in pairs, on the `inputs` of each size, and return all ratios.

        >>> speed_by_size({"fused": fused}, eager, "rows", {1: (torch.ones(1, 8),)})  # doctest: +SKIP

    A comparison takes at least `budget_s` unless its pairs are complete before, and longer where `budget_s` is too
    short for 15 pairs. Raises `ProfilingError` if there is nothing to measure.
    """
    if not versions or not inputs or not all(size > 0 for size in inputs):
        raise ProfilingError("speed_by_size needs at least one version, and inputs of at least one size above 0.")
    device = next((str(t.device) for tensors in inputs.values() for t in tensors), "cpu")
    points = {
        name: tuple(_point(version, eager, size, tensors, budget_s) for size, tensors in sorted(inputs.items()))
        for name, version in versions.items()
    }
    return SpeedBySize(size_name, points, device)


def _point(
    version: Callable[..., object],
    eager: Callable[..., object],
    size: int,
    tensors: Sequence[torch.Tensor],
    budget_s: float,
) -> Point:
    found = compare(version, eager, *tensors, warmup_s=0.05, budget_s=budget_s)
    if len(found.pairs) < LEAST_PAIRS:
        pair_s = (found.candidate.median_us + found.baseline.median_us) / 1e6
        found = compare(version, eager, *tensors, warmup_s=0.05, budget_s=max(budget_s, 2 * LEAST_PAIRS * pair_s))
    low, high = found.interval
    return Point(size, found.ratio, low, high, found.candidate.median_us, found.baseline.median_us)


def _line(name: str, points: Sequence[Point], sizes: Sequence[int], ends: tuple[float, float], number: int) -> str:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    at = [(_x(point.size, sizes), _y(point.ratio, ends)) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    intervals = "".join(
        f'<path d="M{x + 6 * number - 3:.1f} {_y(point.low, ends):.1f}V{_y(point.high, ends):.1f}" '
        f'stroke="{colour}" stroke-width="6" stroke-opacity="0.35"/>'
        for (x, _), point in zip(at, points, strict=True)
    )
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in at)
    y = TOP + 18 * number
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
        f"{intervals}{dots}"
        f'<path d="M{RIGHT + 20} {y}h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
        f'<text x="{RIGHT + 50}" y="{y + 4}">{html.escape(name)}</text>'
    )


def _x(size: int, sizes: Sequence[int]) -> float:
    """Return the place of a size on a logarithmic axis."""
    least, most = math.log(sizes[0]), math.log(sizes[-1])
    share = (math.log(size) - least) / (most - least) if most > least else 0.5
    return LEFT + 20 + share * (RIGHT - LEFT - 20)


def _ends(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis of ratios, which holds 1/2 and 2."""
    return 0.8 * min(0.5, *ratios), 1.25 * max(2.0, *ratios)


def _powers(ends: tuple[float, float]) -> range:
    """Return the powers of 2 to label: each, or each second one where there are many; 1 is among them."""
    least, most = math.ceil(math.log2(ends[0])), math.floor(math.log2(ends[1]))
    step = 1 if most - least < MOST_LABELS else 2
    return range(least + least % step, most + 1, step)


def _y(ratio: float, ends: tuple[float, float]) -> float:
    """Return the place of a ratio on a logarithmic axis, where 1/2 and 2 are equally far from 1."""
    least, most = map(math.log, ends)
    inside = math.log(min(max(ratio, ends[0]), ends[1]))
    return FLOOR - (inside - least) / (most - least) * (FLOOR - TOP)


def _interval(point: Point) -> str:
    known = math.isfinite(point.high - point.low)
    return f"{point.low:.2f} to {point.high:.2f}" if known else "too few pairs"
