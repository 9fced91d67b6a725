"""The parts of which the pages of a class report are made: document, section, table, bar, histogram."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from autograder.host.report.safe_text import Html, element, escaped, joined, one_line
from autograder.host.report.wording import percent

# the page may not load anything or run a script, even if a string was not escaped
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WIDTH, _HEIGHT, _BASE, _TOP = 640, 170, 140, 20  # of the histogram
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><style>
{style}</style></head>
<body><main>
{body}
</main></body></html>
"""


def document(title: str, sections: Iterable[str]) -> str:
    """Return a page that opens offline: no script, no network, no other file."""
    return _PAGE.format(policy=_POLICY, title=escaped(title), style=_style(), body="\n".join(sections))


@functools.cache
def _style() -> str:
    """Return the style sheet: one accent colour, light and dark, and a print version."""
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def section(heading: str, inside: Html) -> tuple[Html, Html]:
    """Return a heading and the card below it."""
    return element("h2", heading), element("div", inside, class_="card")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str = "") -> Html:
    """Return a table; a heading that starts with `#` marks a column of numbers."""
    kinds = ["num" if head.startswith("#") else "" for head in heads]
    titles = [head if isinstance(head, Html) else head.removeprefix("#") for head in heads]
    top = (element("th", title, class_=kind, scope="col") for title, kind in zip(titles, kinds, strict=True))
    body = (
        element("tr", *(element("td", value, class_=kind) for value, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    return element("table", element("thead", element("tr", *top)), element("tbody", *body), class_=f"sheet {class_}")


def bar(value: float, whole: float) -> Html:
    """Return a bar without text, to be shown beside the same value as a number."""
    inside = element("i", style=f"width:{percent(value, whole)}%")
    return element("div", inside, class_="bar", aria_hidden="true")


def listed(parts: Iterable[Html]) -> Html:
    """Return the parts with a comma between them."""
    first, *others = parts
    return joined(first, *(joined(", ", other) for other in others))


def short(name: str) -> str:
    """Return a student's name, shortened to fit into a table."""
    return one_line(name, limit=60)


def histogram(bins: Sequence[int]) -> Html:
    """Return an SVG histogram of equally wide bins from 0 to 100 percent; its label gives the same data as text."""
    most = max([1, *bins])
    return element(
        "svg",
        element("line", x1="0", y1=str(_BASE), x2=str(_WIDTH), y2=str(_BASE)),
        *(_column(i, count, most, len(bins)) for i, count in enumerate(bins)),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"students by percent of the points: {_bins_in_words(bins)}",
        style=f"width:100%;max-width:{_WIDTH}px;height:auto",
    )


def small_histogram(bins: Sequence[int]) -> Html:
    """Return a histogram of the height of a line, without labels but with its data as text."""
    most, words = max([1, *bins]), _bins_in_words(bins)
    columns = (
        element("rect", x=str(14 * i), y=f"{18 - 17 * count / most:.1f}", width="11", height=f"{17 * count / most:.1f}")
        for i, count in enumerate(bins)
        if count
    )
    ground = element("line", x1="0", y1="18.5", x2=str(14 * len(bins)), y2="18.5")
    size = {"width": str(14 * len(bins)), "height": "19"}
    return element("svg", element("title", words), *columns, ground, role="img", aria_label=words, **size)


def _bins_in_words(bins: Sequence[int]) -> str:
    words = (f"{_bin_label(i, len(bins))} %: {count}" for i, count in enumerate(bins) if count)
    return ", ".join(words) or "none"


def _bin_label(index: int, count: int) -> str:
    first, after = index * 100 // count, (index + 1) * 100 // count
    return f"{first}–{100 if after == 100 else after - 1}"


def _column(index: int, value: int, most: int, count: int) -> Html:
    step, height = _WIDTH / count, (_BASE - _TOP) * value / most
    left, top, centre = index * step + 6, _BASE - height, (index + 0.5) * step
    tick = _svg_text(_bin_label(index, count), centre, _BASE + 18, "tick")
    if not value:
        return tick
    shape = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{step - 12:.1f}", "height": f"{height:.1f}"}
    return joined(element("rect", **shape, rx="4"), _svg_text(str(value), centre, top - 6, ""), tick)


def _svg_text(text: str, x: float, y: float, kind: str) -> Html:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor="middle", class_=kind)
