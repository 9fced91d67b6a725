"""How many students got how many percent, as an SVG with its numbers written on it."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.host.report.markup import Html, element, joined

_WIDTH, _HEIGHT, _BASE, _TOP = 640, 170, 140, 20


def histogram_svg(bins: Sequence[int]) -> Html:
    """An SVG of equally wide bins from 0 to 100 percent; its label says the same in words."""
    most = max([1, *bins])
    words = ", ".join(f"{_label(i, len(bins))} %: {count}" for i, count in enumerate(bins) if count)
    return element(
        "svg",
        element("line", x1="0", y1=str(_BASE), x2=str(_WIDTH), y2=str(_BASE)),
        *(_bar(i, count, most, len(bins)) for i, count in enumerate(bins)),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"students by percent of the points: {words or 'none'}",
        style=f"width:100%;max-width:{_WIDTH}px;height:auto",
    )


def _label(index: int, count: int) -> str:
    first, after = index * 100 // count, (index + 1) * 100 // count
    return f"{first}–{100 if after == 100 else after - 1}"


def _bar(index: int, value: int, most: int, count: int) -> Html:
    step, height = _WIDTH / count, (_BASE - _TOP) * value / most
    left, top, centre = index * step + 6, _BASE - height, (index + 0.5) * step
    tick = _text(_label(index, count), centre, _BASE + 18, "tick")
    if not value:
        return tick
    shape = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{step - 12:.1f}", "height": f"{height:.1f}"}
    return joined(element("rect", **shape, rx="4"), _text(str(value), centre, top - 6, ""), tick)


def _text(text: str, x: float, y: float, kind: str) -> Html:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor="middle", class_=kind)
