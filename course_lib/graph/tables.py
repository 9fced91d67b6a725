"""A graph as a table, one node a row."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from course_lib.graph.naming import operator_name
from course_lib.graph.shapes import describe

MAX_CELL = 60  # characters in the text form; HTML shows everything
UNBROKEN = 24  # characters that stay on one line in HTML, where a shape cut in two is hard to read


@dataclass(frozen=True, repr=False)
class Table:
    """A table that prints as text and shows as HTML in a notebook."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [[_shorten(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in lines)

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col" style="text-align: left">{html.escape(column)}</th>' for column in self.columns
        )
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table(gm: torch.fx.GraphModule) -> Table:
    """Return the nodes of a graph in order: name, op, what is called, with what, by how many nodes the result is used.

    Two columns appear when something is known for them: "result" after `propagate_shapes`, and "source" for graphs
    that were captured with source lines.
    """
    nodes = list(gm.graph.nodes)
    columns: dict[str, Sequence[str]] = {
        "node": [node.name for node in nodes],
        "op": [node.op for node in nodes],
        "calls": [_called(node) for node in nodes],
        "arguments": [arguments(node) for node in nodes],
        "users": [str(len(node.users)) for node in nodes],
        "result": [describe(node) for node in nodes],
        "source": [source(node) for node in nodes],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    return Table(tuple(shown), tuple(zip(*shown.values(), strict=True)))


def arguments(node: torch.fx.Node) -> str:
    """Return the arguments of a node as they would stand in a call."""
    keywords = [f"{name}={value!r}" for name, value in node.kwargs.items()]
    return ", ".join([*map(repr, node.args), *keywords])


def source(node: torch.fx.Node) -> str:
    """Return the text of the line that a node came from, or nothing if it is not known."""
    lines = (node.stack_trace or "").strip().splitlines()
    return lines[-1].strip() if len(lines) > 1 and not re.match(r'\s*File "', lines[-1]) else ""


def _called(node: torch.fx.Node) -> str:
    name = operator_name(node)
    return f"{name} ({node.target})" if node.op in ("call_module", "get_attr") else name


def _shorten(cell: str) -> str:
    return cell if len(cell) <= MAX_CELL else cell[: MAX_CELL - 1] + "…"


def _cell(text: str) -> str:
    # on the code and not on the cell, since notebooks style each code element
    wrap = "white-space: pre" if len(text) <= UNBROKEN else "overflow-wrap: anywhere"
    width = "" if len(text) <= UNBROKEN else "; min-width: 11.5em"  # or a narrow page makes one letter a line of it
    shown = f'<code style="{wrap}">{html.escape(text)}</code>' if text else ""  # an empty one is a grey spot
    return f'<td style="text-align: left{width}">{shown}</td>'
