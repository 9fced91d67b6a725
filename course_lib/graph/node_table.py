"""Show a graph as a table with a row for each node."""

import re
from collections.abc import Sequence

import torch

from course_lib.graph.operator_names import operator_name
from course_lib.graph.shapes import describe
from course_lib.show import Table

LONGEST_CELL = 60  # characters in the text form; HTML shows everything


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
    return code_table(tuple(shown), tuple(zip(*shown.values(), strict=True)))


def code_table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    """Return a table whose cells are code, as graphs are shown."""
    return Table(columns, rows, code=True, longest=LONGEST_CELL)


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
