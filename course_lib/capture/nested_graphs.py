"""Build TorchScript graphs from plain data, with the graphs that some of their nodes hold.

TorchScript prints what a fusion group holds below the graph that it stands in, and its parser of printed graphs leaves
that out. Here each graph is text of its own, and lies where it belongs.
"""

from collections.abc import Mapping
from typing import Any

import torch

from course_lib.errors import CaptureError

HOLDERS = ("prim::TensorExprGroup", "prim::oneDNNFusionGroup", "prim::DifferentiableGraph", "prim::FallbackGraph")
"""Kinds of node that hold a graph, in their attribute "Subgraph"."""


def graph_of(data: Mapping[str, Any]) -> Any:
    """Return a `torch._C.Graph` from its printed form and the graphs that its nodes hold.

        >>> inside = {"ir": "graph(%x : Tensor):\\n  %y : Tensor = aten::exp(%x)\\n  return (%y)", "held": []}
        >>> group = "  %y : Tensor = prim::TensorExprGroup[held=0](%x)"
        >>> graph = graph_of({"ir": f"graph(%x : Tensor):\\n{group}\\n  return (%y)", "held": [inside]})
        >>> [node.kind() for node in next(graph.nodes()).g("Subgraph").nodes()]
        ['aten::exp']

    The attribute ``held`` of a node numbers its graph in the list ``held``. Raises `CaptureError` for text that
    TorchScript cannot parse.
    """
    try:
        graph: Any = torch._C.parse_ir(data["ir"])
    except RuntimeError as error:
        raise CaptureError(f"TorchScript cannot parse this graph: {error}") from error
    for kind in HOLDERS:
        for node in graph.findAllNodes(kind, recurse=True):
            node.g_("Subgraph", graph_of(data["held"][node.i("held")]))
    return graph
