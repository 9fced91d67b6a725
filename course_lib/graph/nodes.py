"""Describe the nodes of a graph: names of what they call, counts of operators, and a table."""

import collections
import re
from collections.abc import Sequence
from typing import Any

import torch

from course_lib.graph.data.targets import function_names
from course_lib.graph.shapes import describe, require_graph
from course_lib.show import Table


def operator_name(node: torch.fx.Node) -> str:
    """Return the name of what a node calls.

    Functions have their public name ("torch.nn.functional.gelu", "operator.add"), methods begin with "Tensor.", and
    modules have the name of their class ("torch.nn.Linear"). Inputs, parameters and the output have the name of
    their kind.
    """
    if node.op == "call_function":
        return function_names().get(node.target) or _qualified(node.target)
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if node.op == "call_module":
        owner = node.graph.owning_module
        assert owner is not None, "the graph of a GraphModule knows its module"
        cls = type(owner.get_submodule(str(node.target)))
        return f"torch.nn.{cls.__name__}" if cls.__module__.startswith("torch.nn.modules.") else cls.__qualname__
    return {"placeholder": "input", "get_attr": "parameter", "output": "output"}[node.op]


def _qualified(function: Any) -> str:
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{function}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module and module != "__main__" else name


def count_operators(gm: torch.fx.GraphModule) -> dict[str, int]:
    """Return how many nodes call each function, method or module, by name in alphabetical order.

        >>> count_operators(torch.fx.symbolic_trace(lambda x: torch.relu(x) + x))
        {'operator.add': 1, 'torch.relu': 1}

    Inputs, parameters and the output are not counted. Names are those of `operator_name`. Raises `GraphError` if `gm`
    holds no graph.
    """
    require_graph("count_operators", gm)
    calls = (node for node in gm.graph.nodes if node.op.startswith("call_"))
    return dict(sorted(collections.Counter(operator_name(node) for node in calls).items()))


LONGEST_CELL = 60  # characters in the text form; HTML shows everything


def table(gm: torch.fx.GraphModule) -> Table:
    """Return a table of the nodes of a graph in order: name, op, called function, arguments, and number of users.

    Two columns appear only if they have values: "result" after `propagate_shapes`, and "source" for graphs
    that were captured with source lines. Raises `GraphError` if `gm` holds no graph.
    """
    require_graph("table", gm)
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
    """Return a table whose cells are formatted as code."""
    return Table(columns, rows, code=True, longest=LONGEST_CELL)


def arguments(node: torch.fx.Node) -> str:
    """Return the arguments of a node as they are written in a call."""
    keywords = [f"{name}={value!r}" for name, value in node.kwargs.items()]
    return ", ".join([*map(repr, node.args), *keywords])


def source(node: torch.fx.Node) -> str:
    """Return the text of the line that a node came from, or an empty string if it is unknown."""
    lines = (node.stack_trace or "").strip().splitlines()
    return lines[-1].strip() if len(lines) > 1 and not re.match(r'\s*File "', lines[-1]) else ""


def _called(node: torch.fx.Node) -> str:
    name = operator_name(node)
    return f"{name} ({node.target})" if node.op in ("call_module", "get_attr") else name
