"""Draw a matrix of numbers, or the blocks of a mask, as squares, with a text that says the same."""

import html
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch

from course_lib.errors import ProfilingError
from course_lib.profiling.plots import Plot

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

Value = TypeVar("Value")

LARGEST = 64  # rows or columns; more squares cannot be told apart
SIDE, MARGIN = 320, 46  # pixels of the longer side, and of the strip for names and numbers of the axes
LETTER = 7  # pixels that a digit needs
DARK = (31, 90, 153)  # the colour of the largest number; the smallest is white
KINDS = ("empty", "partial", "full")


def heat_map(name: str, values: torch.Tensor, *, rows: str = "query", columns: str = "key") -> Plot:
    """Draw a matrix as squares, white for its smallest number and dark for its largest; large squares hold the number.

        >>> print(heat_map("identity", torch.eye(3)))
        identity: 3 query by 3 key, from 0 to 1; query 0 is largest at key 0, 1 at 1, 2 at 2

    `rows` and `columns` name what the two dimensions count. Raises `ProfilingError` for what is no tensor of
    two dimensions, for more than 64 rows or columns, and for numbers that are not finite.
    """
    if not isinstance(values, torch.Tensor):
        raise ProfilingError(f"heat_map got a {type(values).__name__}; it expects a tensor of two dimensions.")
    if values.dim() != 2 or not values.numel() or max(values.shape) > LARGEST or not torch.isfinite(values).all():
        raise ProfilingError(
            f"heat_map got a tensor of shape {tuple(values.shape)}; it expects finite numbers in two dimensions, of at "
            f"most {LARGEST} rows and columns."
        )
    numbers = values.detach().double()
    low, high = float(numbers.min()), float(numbers.max())
    shades = (numbers - low) / ((high - low) or 1.0)
    cells = list(map(list, map(zip, numbers.tolist(), shades.tolist())))
    places = [f"{row} at {column}" for row, column in enumerate(numbers.argmax(1).tolist())]
    first = places[0].replace("0 at ", f"0 is largest at {columns} ", 1)
    text = (
        f"{name}: {values.shape[0]} {rows} by {values.shape[1]} {columns}, from {low:.3g} to {high:.3g}; {rows} "
        f"{', '.join([first, *places[1:]])}"
    )
    return _squares(text, rows, columns, f"white {low:.3g}, dark {high:.3g}", cells, _numbered)


def _colour(shade: float) -> str:
    red, green, blue = (round(255 - shade * (255 - part)) for part in DARK)
    return f"rgb({red},{green},{blue})"


def _numbered(x: float, y: float, side: float, cell: tuple[float, float]) -> str:
    value, shade = cell
    told = f"{value:g}" if value == int(value) else f"{value:.2f}"
    if side < len(told) * LETTER:
        return _square(x, y, side, _colour(shade))
    place = f'x="{x + side / 2:g}" y="{y + side / 2 + 4:g}" fill="{"white" if shade > 0.6 else "black"}"'
    return f'{_square(x, y, side, _colour(shade))}<text {place} text-anchor="middle" font-size="11">{told}</text>'


def _square(x: float, y: float, side: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" fill="{colour}" stroke="#bbb"/>'


def block_map(name: str, mask: "BlockMask") -> Plot:
    """Draw the blocks of the first row and head of a mask: full ones dark, partial ones half, empty ones white.

    The blocks are those that `mask` lists, a `BlockMask` of `torch.nn.attention.flex_attention`.
    """
    kinds = block_kinds(mask)
    counts = Counter(kind for row in kinds for kind in row)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in reversed(KINDS))
    text = f"{name}: {len(kinds)} by {len(kinds[0])} blocks, {told}; " + "; ".join(
        f"queries {number}: {_told(row)}" for number, row in enumerate(kinds)
    )
    legend = "dark: full · half dark: partial · white: empty"
    return _squares(text, "block of queries", "block of keys", legend, kinds, _block)


def _told(row: Sequence[str]) -> str:
    return " ".join(f"{number} {kind}" for number, kind in enumerate(row) if kind != "empty") or "none"


def block_kinds(mask: "BlockMask") -> list[list[str]]:
    """Return for each block of the first row and head whether it is "full", "partial" or "empty"."""
    rows, columns = mask.to_dense().shape[-2:]
    found = [["empty"] * columns for _ in range(rows)]
    listed = (("partial", mask.kv_num_blocks, mask.kv_indices), ("full", mask.full_kv_num_blocks, mask.full_kv_indices))
    for kind, counts, indices in listed:
        if counts is None or indices is None:  # a mask may list no full blocks at all
            continue
        for row in range(rows):
            for column in indices[0, 0, row, : int(counts[0, 0, row])].tolist():
                found[row][column] = kind
    return found


def _block(x: float, y: float, side: float, kind: str) -> str:
    dark = f"rgb{DARK}"
    half = f'<path d="M{x:g} {y:g} v{side:g} h{side:g} z" fill="{dark}"/>' if kind == "partial" else ""
    return _square(x, y, side, dark if kind == "full" else "white") + half


def _squares(
    text: str,
    rows: str,
    columns: str,
    legend: str,
    values: Sequence[Sequence[Value]],
    drawn: Callable[[float, float, float, Value], str],
) -> Plot:
    side = SIDE / max(len(values), len(values[0]))
    height, width = side * len(values) + MARGIN + 2, max(side * len(values[0]), 7 * len(columns + legend)) + MARGIN + 2
    cells = "".join(
        drawn(MARGIN + side * column, MARGIN + side * row, side, value)
        for row, line in enumerate(values)
        for column, value in enumerate(line)
    )
    middle = MARGIN + side * len(values) / 2
    return Plot(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" '
        f'role="img" font-family="sans-serif" font-size="12"><title>{html.escape(text)}</title>'
        f'<rect width="100%" height="100%" fill="white"/><text x="{MARGIN}" y="16">{html.escape(columns)} →</text>'
        f'<text x="{width - 2:g}" y="16" text-anchor="end" fill="#444">{legend}</text>'
        f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">← {html.escape(rows)}</text>'
        f"{_axes(side, len(values), len(values[0]))}{cells}</svg>",
        text,
    )


def _axes(side: float, rows: int, columns: int) -> str:
    """Return a number for each row and column; none where they would touch."""
    if side < 2 * LETTER + 2:
        return ""
    across = (f'<text x="{MARGIN + side * (n + 0.5):g}" y="{MARGIN - 5}">{n}</text>' for n in range(columns))
    down = (f'<text x="{MARGIN - 11}" y="{MARGIN + side * (n + 0.5) + 4:g}">{n}</text>' for n in range(rows))
    return f'<g text-anchor="middle" font-size="11" fill="#444">{"".join([*across, *down])}</g>'
