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
SIDE, MARGIN = 320, 34  # pixels of the longer side, and of the strip for the names of the axes
DARK = (31, 90, 153)  # the colour of the largest number; the smallest is white
KINDS = ("empty", "partial", "full")


def heat_map(name: str, values: torch.Tensor, *, rows: str = "query", columns: str = "key") -> Plot:
    """Draw a matrix as squares, white for its smallest number and dark for its largest.

        >>> print(heat_map("identity", torch.eye(3)))
        identity: 3 query by 3 key, from 0 to 1; query 0 is largest at key 0, 1 at 1, 2 at 2

    `rows` and `columns` name what the two dimensions count. Raises `ProfilingError` for another number of dimensions,
    for more than 64 rows or columns, and for numbers that are not finite.
    """
    if values.dim() != 2 or not values.numel() or max(values.shape) > LARGEST or not torch.isfinite(values).all():
        raise ProfilingError(
            f"heat_map got a tensor of shape {tuple(values.shape)}; it expects finite numbers in two dimensions, of at "
            f"most {LARGEST} rows and columns."
        )
    numbers = values.detach().double()
    low, high = float(numbers.min()), float(numbers.max())
    shades = ((numbers - low) / ((high - low) or 1.0)).tolist()
    places = [f"{row} at {column}" for row, column in enumerate(numbers.argmax(1).tolist())]
    first = places[0].replace("0 at ", f"0 is largest at {columns} ", 1)
    text = (
        f"{name}: {values.shape[0]} {rows} by {values.shape[1]} {columns}, from {low:.3g} to {high:.3g}; {rows} "
        f"{', '.join([first, *places[1:]])}"
    )
    return _squares(text, rows, columns, shades, lambda x, y, side, shade: _square(x, y, side, _colour(shade)))


def _colour(shade: float) -> str:
    red, green, blue = (round(255 - shade * (255 - part)) for part in DARK)
    return f"rgb({red},{green},{blue})"


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
    return _squares(text, "block of queries", "block of keys", kinds, _block)


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
    values: Sequence[Sequence[Value]],
    drawn: Callable[[float, float, float, Value], str],
) -> Plot:
    side = SIDE / max(len(values), len(values[0]))
    height, width = side * len(values) + MARGIN, side * len(values[0]) + MARGIN
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
        f'<rect width="100%" height="100%" fill="white"/><text x="{MARGIN}" y="22">{html.escape(columns)} →</text>'
        f'<text transform="translate(22 {middle:g}) rotate(-90)" text-anchor="middle">← {html.escape(rows)}</text>'
        f"{cells}</svg>",
        text,
    )
