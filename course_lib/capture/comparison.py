"""The result of comparing capture modes, as data and as a table."""

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from course_lib.capture.captured import Captured
from course_lib.errors import CaptureError

Verdict = Literal["captured", "refused", "refuses a probe", "silently wrong"]
MARKS: Mapping[str, str] = {"captured": "✓", "refused": "–", "refuses a probe": "(–)", "silently wrong": "✗"}
LEGEND = "  ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
COLUMNS = ("mode", "", "verdict", "why")
WIDTH = 90  # characters of a line in the last column of the text form


@dataclass(frozen=True)
class ModeResult:
    """What became of a program in one capture mode."""

    mode: str
    verdict: Verdict
    why: str  # one sentence: how it was captured, why it was refused, or on which probe it is wrong and by how much
    captured: Captured | None = field(default=None, repr=False)  # of a copy of the program; None if refused


@dataclass(frozen=True, repr=False)
class Comparison:
    """What became of a program in each mode; prints as a table and shows as one in a notebook."""

    name: str  # of the program
    results: tuple[ModeResult, ...]

    def __getitem__(self, mode: str) -> ModeResult:
        """Return the result of a mode; raise `CaptureError` if it was not compared."""
        for result in self.results:
            if result.mode == mode:
                return result
        raise CaptureError(f"The mode {mode!r} was not compared; these were: {', '.join(self.verdicts)}.")

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict by mode."""
        return {result.mode: result.verdict for result in self.results}

    def __str__(self) -> str:
        rows = [COLUMNS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*(row[:3] for row in rows), strict=True)]
        lines = [line for row in rows for line in _wrapped(row, widths)]
        lines.insert(1, "  ".join("-" * width for width in (*widths, len(COLUMNS[3]))))
        return "\n".join([self.name, *lines])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form

    def _repr_html_(self) -> str:
        align = 'style="text-align: left"'
        narrow = 'style="text-align: left; white-space: nowrap"'
        head = "".join(f'<th scope="col" {align}>{html.escape(column)}</th>' for column in COLUMNS)
        styles = (narrow, narrow, narrow, align)
        rows = (zip(row, styles, strict=True) for row in self._rows())
        body = "".join(f"<tr>{''.join(f'<td {s}>{html.escape(cell)}</td>' for cell, s in row)}</tr>" for row in rows)
        caption = f"<caption {align}>{html.escape(self.name)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [(result.mode, MARKS[result.verdict], result.verdict, result.why) for result in self.results]


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return a row as lines; what is long goes on in the last column."""
    first, *rest = textwrap.wrap(row[3], WIDTH) or [""]
    margin = " " * (sum(widths) + 2 * len(widths))
    return ["  ".join([*map(str.ljust, row[:3], widths), first]), *(margin + line for line in rest)]


@dataclass(frozen=True, repr=False)
class Overview:
    """Programs against capture modes, one mark for each pair; prints as a table and shows as one in a notebook."""

    comparisons: tuple[Comparison, ...]  # all of the same modes

    def __str__(self) -> str:
        columns = [("program", *(each.name for each in self.comparisons))]
        columns += [(mode, *marks) for mode, marks in self._marks().items()]
        widths = [max(map(len, column)) for column in columns]
        rows = list(zip(*columns, strict=True))
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join([*("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows), "", LEGEND])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form

    def _repr_html_(self) -> str:
        marks = self._marks()
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in ("program", *marks))
        rows = zip((each.name for each in self.comparisons), *marks.values(), strict=True)
        body = "".join(
            f'<tr><th scope="row" style="text-align: left">{html.escape(name)}</th>'
            + "".join(f"<td>{mark}</td>" for mark in row)
            + "</tr>"
            for name, *row in rows
        )
        return f"<table><caption>{LEGEND}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _marks(self) -> dict[str, list[str]]:
        modes = [result.mode for result in self.comparisons[0].results]
        return {mode: [MARKS[each[mode].verdict] for each in self.comparisons] for mode in modes}


def overview(comparisons: Sequence[Comparison]) -> Overview:
    """Put comparisons side by side.

    Raises `CaptureError` if there are none, or if they are of different modes.
    """
    if not comparisons or any(list(each.verdicts) != list(comparisons[0].verdicts) for each in comparisons):
        raise CaptureError("overview got no comparisons, or some of different modes; it expects the same modes in all.")
    return Overview(tuple(comparisons))
