"""Show numbers as pictures with an equivalent text: line plots drawn here, and figures of Matplotlib."""

import base64
import html
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.errors import ProfilingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 360, 260, 60, 40, 50
GAP = 20  # between two plots
COLOUR = "#1f5a99"
HALO = 'paint-order="stroke" stroke="white" stroke-width="4"'  # keeps a number readable where a line crosses it


@dataclass(frozen=True)
class Plot:
    """Hold a picture for notebooks and its equivalent text."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        """Return the picture with its text for screen readers, which JupyterLab omits for a plain SVG."""
        source = f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}"
        return f'<img alt="{html.escape(self.text, quote=True)}" style="max-width: 100%" src="{source}"/>'

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def picture(figure: "Figure", text: str) -> Plot:
    """Return a figure of Matplotlib with a `text` that says what it shows, and close the figure.

        >>> picture(figure, f"Loss falls from {losses[0]:.1f} to {losses[-1]:.1f}.")  # doctest: +SKIP

    As the last line of a cell it is shown once, and screen readers read its text.
    """
    from matplotlib import pyplot

    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", bbox_inches="tight")
    pyplot.close(figure)  # otherwise the notebook draws it again, without the text
    return Plot(drawn.getvalue(), text)


def plot_lines(
    x_name: str, xs: Sequence[float], lines: Mapping[str, Sequence[float]], *, to_scale: bool = False
) -> Plot:
    """Draw each line over the same x values in a plot of its own, side by side, with a number at every point.

    The y axis begins at 0, so that lengths may be compared, or at the least number if that is negative. The x values
    are spaced evenly, in the order given; with `to_scale`, by their differences. Raises `ProfilingError` for lines of
    another length than the x values, and for numbers that are not finite.
    """
    for name, ys in lines.items():
        if len(ys) != len(xs) or not xs:
            raise ProfilingError(
                f"plot_lines got {len(ys)} numbers for {name!r}; it expects one for each of {len(xs)} x."
            )
        if not all(map(math.isfinite, (*xs, *ys))):
            raise ProfilingError(
                f"plot_lines got {[*ys]!r:.80} for {name!r} over {[*xs]!r:.80}; it expects finite numbers."
            )
    text = "\n".join(
        f"{name}: {', '.join(f'{x:g} → {_number(y)}' for x, y in zip(xs, ys, strict=True))}"
        for name, ys in lines.items()
    )
    places = [(x - min(xs)) / ((max(xs) - min(xs)) or 1) for x in xs] if to_scale else _evenly(len(xs))
    panels = [
        f'<g transform="translate({place * (WIDTH + GAP)} 0)">{_panel(x_name, name, xs, places, ys)}</g>'
        for place, (name, ys) in enumerate(lines.items())
    ]
    width = len(lines) * (WIDTH + GAP) - GAP
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="12"><title>{html.escape(text)}</title>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(panels)}</svg>',
        text,
    )


def _evenly(number: int) -> list[float]:
    return [place / max(number - 1, 1) for place in range(number)]


def _panel(x_name: str, name: str, xs: Sequence[float], places: Sequence[float], ys: Sequence[float]) -> str:
    floor, right = HEIGHT - BOTTOM, WIDTH - 20
    least = min(*ys, 0.0)
    span = (max(*ys, 0.0) - least) or 1.0
    points = [
        (LEFT + 30 + place * (right - LEFT - 60), floor - (y - least) / span * (floor - TOP - 20))
        for place, y in zip(places, ys, strict=True)
    ]
    marks = "".join(
        f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{COLOUR}"/>'
        f'<text x="{px:.1f}" y="{py - 9:.1f}" text-anchor="middle" {HALO}>{_number(y)}</text>'
        f'<text x="{px:.1f}" y="{floor + 18}" text-anchor="middle">{x:g}</text>'
        for (px, py), x, y in zip(points, xs, ys, strict=True)
    )
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return (
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-weight="bold">{html.escape(name)}</text>'
        f'<path d="M{LEFT} {TOP - 10}V{floor}H{right}" fill="none" stroke="#444"/>'
        f'<text x="{LEFT - 8}" y="{floor + 4}" text-anchor="end">{_number(least)}</text>'
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{html.escape(x_name)}</text>'
        f'<polyline points="{path}" fill="none" stroke="{COLOUR}" stroke-width="2"/>{marks}'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
