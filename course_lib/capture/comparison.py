"""The result of comparing capture modes, as data and as a table."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from course_lib.capture.captured import Captured

Verdict = Literal["captured", "refused", "refuses a probe", "silently wrong"]
MARKS: Mapping[str, str] = {"captured": "✓", "refused": "–", "refuses a probe": "(–)", "silently wrong": "✗"}
COLUMNS = ("mode", "", "verdict", "why")
WIDTH = 100  # characters of the last column in the text form; HTML shows everything


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
        """Return the result of a mode."""
        return next(result for result in self.results if result.mode == mode)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict by mode."""
        return {result.mode: result.verdict for result in self.results}

    def __str__(self) -> str:
        rows = [COLUMNS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*(row[:3] for row in rows), strict=True)]
        lines = [[*map(str.ljust, row[:3], widths), _shorten(row[3])] for row in rows]
        lines.insert(1, ["-" * width for width in (*widths, len(COLUMNS[3]))])
        return "\n".join([self.name, *("  ".join(line).rstrip() for line in lines)])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form

    def _repr_html_(self) -> str:
        align = 'style="text-align: left"'
        head = "".join(f'<th scope="col" {align}>{html.escape(column)}</th>' for column in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td {align}>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        caption = f"<caption>{html.escape(self.name)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [(result.mode, MARKS[result.verdict], result.verdict, result.why) for result in self.results]


def _shorten(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
