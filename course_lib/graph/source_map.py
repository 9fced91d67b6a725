"""Map the loops that Inductor generated to the lines of the program that they come from.

This module alone uses these private parts of PyTorch, as they are in torch 2.13: the option that gives the loops after
fusion, and the graph nodes that a loop stores as its origins.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import torch

from course_lib.graph.generated_code import lowered
from course_lib.graph.loops import does_nothing
from course_lib.graph.nodes import code_table, operator_name
from course_lib.show import Table

LIBRARY = "library"
COLUMNS = ("block", "over", "reducing", "operators", "lines")


def source_map(fn: Callable[..., object], inputs: Sequence[object]) -> Table:
    """Return a row for each block of loops that Inductor generates for `fn(*inputs)`, in the order of the text.

    Fused loops form one block. A row contains the sizes of its loops, the sizes of the reductions inside them, the
    operators of the graph that they compute, and the source lines of these operators. Blocks are numbered in the
    order of the text; a library call has no number. Like `lowered`, this function compiles nothing.
    """
    rows: list[tuple[str, ...]] = []

    def keep(nodes: list[Any]) -> list[Any]:  # a plain function, since Inductor makes deep copies of its options
        rows.extend(_cells(node) for node in nodes if not all(map(does_nothing, node.get_nodes())))
        return nodes

    lowered(fn, inputs, config={"_post_fusion_custom_pass": keep})
    numbers = count()
    return code_table(COLUMNS, tuple(("" if row[0] == LIBRARY else str(next(numbers)), *row) for row in rows))


def _cells(node: Any) -> tuple[str, ...]:
    parts = [part for part in node.get_nodes() if not does_nothing(part)]
    origins = _in_order({origin for part in parts for origin in part.node.get_origins()})
    operators = dict.fromkeys(
        operator_name(origin).removeprefix("torch.ops.aten.").partition(".")[0]
        for origin in origins
        if origin.op == "call_function"
    )
    lines = dict.fromkeys(line for origin in origins if (line := _line(origin)))
    if any(part.is_extern() for part in parts):
        return (LIBRARY, "", ", ".join(operators), "; ".join(lines))
    over = dict.fromkeys(_product(part.group[1][0]) for part in parts)
    reducing = dict.fromkeys(_product(part.group[1][1]) for part in parts if part.is_reduction())
    return (", ".join(over), ", ".join(reducing), ", ".join(operators), "; ".join(lines))


def _in_order(origins: set[torch.fx.Node]) -> list[torch.fx.Node]:
    """Return nodes in the order of their graph."""
    return [node for graph in {origin.graph for origin in origins} for node in graph.nodes if node in origins]


def _product(sizes: Sequence[Any]) -> str:
    return " x ".join(map(str, sizes)) or "1"


def _line(node: torch.fx.Node) -> str:
    """Return the text of the user's line that a node came from."""
    from course_lib.capture.source_lines import (
        line_in_text,  # late, because graphs are also read where `course_lib.capture` is hidden
    )

    line = line_in_text(node.stack_trace or "")
    return line.text if line is not None else ""
