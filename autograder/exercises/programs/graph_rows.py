"""Graphs from rows of plain data; the text of this file is sent to the worker, which compares two of them by an answer.

A row is `{"name", "call", "args", "keywords"}`. `call` is "input", "constant", "output" or an operator such as
"relu.default". An argument `{"node": name}` stands for an earlier row. A constant has numbers, their dtype and the
name of its attribute.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

Row = dict[str, Any]


def graph_of(rows: Sequence[Row]) -> fx.GraphModule:
    """Return a graph of ATen operators with one node a row."""
    graph, root, nodes = fx.Graph(), torch.nn.Module(), dict[str, fx.Node]()
    for row in rows:
        args = [_argument(each, nodes) for each in row["args"]]
        keywords = {key: _argument(each, nodes) for key, each in row["keywords"].items()}
        name, call = row["name"], row["call"]
        if call == "input":
            node = graph.placeholder(name)
        elif call == "constant":
            numbers, dtype, attribute = args
            root.register_buffer(attribute, torch.tensor(numbers, dtype=getattr(torch, dtype)))
            node = graph.create_node("get_attr", attribute, name=name)
        elif call == "output":
            node = graph.output(args[0])
        else:
            packet, overload = call.split(".")
            target = getattr(getattr(torch.ops.aten, packet), overload)
            node = graph.create_node("call_function", target, tuple(args), keywords, name=name)
        nodes[name] = node
    return fx.GraphModule(root, graph)


def _argument(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    if isinstance(value, dict):
        return nodes[value["node"]]
    return [_argument(each, nodes) for each in value] if isinstance(value, list) else value


def compare(answer: Callable[..., Any], before: Sequence[Row], after: Sequence[Row]) -> Any:
    """Return what the answer says about two graphs."""
    return answer(graph_of(before), graph_of(after))
