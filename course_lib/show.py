"""Show results: one table for texts and notebooks, and quantities with suitable units."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

UNBROKEN = 24  # characters of code that stay on one line in HTML; a shape that is cut in two is hard to read
GAP = "  "  # between two columns of text


@dataclass(frozen=True)
class Cell:
    """A cell with its own HTML form; its text form is `text`."""

    text: str
    html: str = ""  # markup that the caller has escaped; empty for the escaped text
    classes: str = ""  # classes of the element `td`, which then carries no style of its own


@dataclass(frozen=True, repr=False)
class Table:
    """A table that prints as text and shows as HTML in a notebook.

        >>> print(Table(("what", "bytes"), (("weight", "64"), ("bias", "8")), numbers=("bytes",)))
        what    bytes
        ------  -----
        weight     64
        bias        8

    A plain string is escaped in HTML, a `Cell` may bring its own markup and classes.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""  # above the table
    numbers: tuple[str, ...] = ()  # columns that are aligned to the right
    code: bool = False  # show each cell as code in HTML
    longest: int | None = None  # characters of a cell in text, the rest is cut; HTML shows everything
    wrapped: int | None = None  # characters of a line in the last column of the text; others never wrap
    rule: Literal["columns", "line", "none"] = "columns"  # the line below the headings in text

    def __str__(self) -> str:
        lines = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        lines = [[_cut(cell, self.longest) for cell in line] for line in lines]
        parts = [_folded(line, self.wrapped) for line in lines]
        measured = [line for part in parts for line in part]
        widths = [max(map(len, column)) for column in zip(*measured, strict=True)]
        if self.wrapped is not None:
            widths[-1] = len(self.columns[-1])
        text = [self._line(line, widths) for line in measured]
        rules = {
            "columns": [GAP.join("-" * width for width in widths)],
            "line": ["-" * max(map(len, text))],
            "none": [],
        }
        above = [self.caption] if self.caption else []
        return "\n".join([*above, text[0], *rules[self.rule], *text[1:]])

    __repr__ = __str__  # notebooks, terminals and logs all show the readable form

    def _repr_html_(self) -> str:
        caption = f'<caption style="text-align: left">{html.escape(self.caption)}</caption>' if self.caption else ""
        head = "".join(
            f'<th scope="col" style="text-align: {self._side(name)}">{html.escape(name)}</th>' for name in self.columns
        )
        body = "".join(f"<tr>{''.join(map(self._cell, self.columns, row))}</tr>" for row in self.rows)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        """Return one line of text."""
        aligned = (
            cell.rjust(width) if name in self.numbers else cell.ljust(width)
            for name, cell, width in zip(self.columns, cells, widths, strict=True)
        )
        return GAP.join(aligned).rstrip()

    def _side(self, column: str) -> str:
        return "right" if column in self.numbers else "left"

    def _cell(self, column: str, cell: str | Cell) -> str:
        if isinstance(cell, str):
            cell = Cell(cell)
        shown = cell.html or (_code(cell.text) if self.code else html.escape(cell.text))
        if cell.classes:
            return f'<td class="{html.escape(cell.classes, quote=True)}">{shown}</td>'
        # Without a minimum width, a narrow page breaks long code after every letter.
        width = "; min-width: 11.5em" if self.code and len(cell.text) > UNBROKEN else ""
        unbroken = "; white-space: nowrap" if self.wrapped is not None and column != self.columns[-1] else ""
        return f'<td style="text-align: {self._side(column)}{width}{unbroken}">{shown}</td>'


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def _folded(line: list[str], width: int | None) -> list[list[str]]:
    """Return a row as lines; lines after the first have text only in the last column."""
    if width is None:
        return [line]
    first, *rest = textwrap.wrap(line[-1], width) or [""]
    return [[*line[:-1], first], *([*("" for _ in line[:-1]), part] for part in rest)]


def _code(text: str) -> str:
    """Return text as code; return nothing for an empty text, since an empty code element shows a grey spot."""
    # The style is on the code and not on the cell, since notebooks style each code element.
    wrap = "white-space: pre" if len(text) <= UNBROKEN else "overflow-wrap: anywhere"
    return f'<code style="{wrap}">{html.escape(text)}</code>' if text else ""


def format_us(time_us: float) -> str:
    """Return a time that is given in microseconds, with three digits and a unit.

    >>> format_us(0.25), format_us(12.3456), format_us(45678.0), format_us(3e6)
    ('250 ns', '12.3 µs', '45.7 ms', '3 s')
    """
    for size_us, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if abs(time_us) >= size_us:
            return f"{time_us / size_us:.3g} {unit}"
    return f"{time_us * 1e3:.3g} ns"


def format_bytes(size: float) -> str:
    """Return a size in bytes, with three digits and a binary unit.

    >>> format_bytes(0), format_bytes(1536), format_bytes(3 << 30), format_bytes(-2048)
    ('0 B', '1.5 KiB', '3 GiB', '-2 KiB')
    """
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size) >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def format_count(count: float) -> str:
    """Return a whole number with separators between thousands.

    >>> format_count(1234567)
    '1,234,567'
    """
    return f"{count:,.0f}"
