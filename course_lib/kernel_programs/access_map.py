"""Draw which program of a kernel touched which element: one cell an element, with the number of the program in it."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

CELL, LEFT, TOP = 26, 34, 30
MAX_CELLS = 2048
# Pale enough for black numbers; a program's number tells what its colour tells.
COLOURS = ("#cfe3f7", "#fbdcb8", "#cdebc9", "#f6cfe0", "#ddd2f3", "#f3ecb4", "#c9ecec", "#e3d6c6")
UNTOUCHED = "#ffffff"


@dataclass(frozen=True, repr=False)
class AccessMap:
    """A picture of a matrix, with the programs that touched each element; as text, a sentence for each row.

    >>> AccessMap("x", "load", (1, 4), ((0,), (0,), (1,), ()))
    x, loaded: row 0: elements 0 to 1 by program 0, element 2 by program 1, element 3 by none.
    """

    tensor: str
    action: str
    shape: tuple[int, int]
    programs: tuple[tuple[int, ...], ...]
    """For each element, row by row, the program of every access, so a program that loads twice occurs twice."""

    def __str__(self) -> str:
        rows, columns = self.shape
        described = (self._row(self.programs[row * columns : (row + 1) * columns]) for row in range(rows))
        groups = [
            (text, [row for row, _ in same]) for text, same in groupby(enumerate(described), lambda each: each[1])
        ]
        lines = (f"{_span('row', 'rows', rows_there)}: {text}" for text, rows_there in groups)
        done = {"load": "loaded", "store": "stored", "atomic": "added to"}[self.action]
        return f"{self.tensor}, {done}: {'; '.join(lines)}."

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        rows, columns = self.shape
        if rows * columns > MAX_CELLS:
            return ""
        width, height = max(LEFT + columns * CELL + 4, 7 * len(self._title())), TOP + rows * CELL + 4
        cells = (self._cell(row, column) for row in range(rows) for column in range(columns))
        label = html.escape(str(self), quote=True)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img" aria-label="{label}" font-family="sans-serif" font-size="11">'
            f'<rect width="100%" height="100%" fill="white"/>{self._axes()}{"".join(cells)}</svg>'
        )

    def _repr_html_(self) -> str:
        """Return the picture with its text for screen readers; the text alone if there are too many cells."""
        drawn = self._repr_svg_()
        if not drawn:
            return f"<p>{html.escape(str(self))}</p>"
        source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
        return f'<img alt="{html.escape(str(self), quote=True)}" style="max-width: 100%" src="{source}"/>'

    def _row(self, cells: Sequence[tuple[int, ...]]) -> str:
        parts, start = [], 0
        for programs, same in groupby(cells):
            count = len(list(same))
            by = "none" if not programs else f"program{'s' * (len(programs) > 1)} {' and '.join(map(str, programs))}"
            parts.append(f"{_span('element', 'elements', range(start, start + count))} by {by}")
            start += count
        return ", ".join(parts)

    def _title(self) -> str:
        return f"{self.tensor}: {self.action}, by program"

    def _axes(self) -> str:
        rows, columns = self.shape
        title = f'<text x="2" y="12" font-weight="bold">{html.escape(self._title())}</text>'
        across = "".join(
            f'<text x="{LEFT + CELL * (i + 0.5)}" y="{TOP - 4}" text-anchor="middle" fill="#555">{i}</text>'
            for i in range(columns)
        )
        down = "".join(
            f'<text x="{LEFT - 6}" y="{TOP + CELL * (i + 0.65)}" text-anchor="end" fill="#555">{i}</text>'
            for i in range(rows)
        )
        return title + across + down

    def _cell(self, row: int, column: int) -> str:
        programs = self.programs[row * self.shape[1] + column]
        x, y = LEFT + column * CELL, TOP + row * CELL
        colour = COLOURS[programs[0] % len(COLOURS)] if programs else UNTOUCHED
        several = len(programs) > 1
        return (
            f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour}" stroke="#777" '
            f'stroke-width="{2 if several else 0.6}"/><text x="{x + CELL / 2}" y="{y + CELL * 0.65}" '
            f'text-anchor="middle">{_programs(programs)}</text>'
        )


def _programs(programs: Sequence[int]) -> str:
    """Return the programs of one element in a few letters: "3", "3×2" if one came twice, "0–5" or "0…9" if several."""
    if not programs:
        return ""
    first, last, number = min(programs), max(programs), len(set(programs))
    if number == 1:
        return f"{first}×{len(programs)}" if len(programs) > 1 else str(first)
    return f"{first}{'–' if number == last - first + 1 else '…'}{last}"


def _span(one: str, several: str, numbers: Sequence[int]) -> str:
    return f"{one} {numbers[0]}" if len(numbers) == 1 else f"{several} {numbers[0]} to {numbers[-1]}"
