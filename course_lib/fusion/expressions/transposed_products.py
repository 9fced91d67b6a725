"""Find matrix products with a transposed weight, `x @ weight.T`: linear layers that are not written as such."""

import torch
from torch import fx

from course_lib.fusion.calls import read_call
from course_lib.graph.memory import storage_of


def transposed_products(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    """Return the products of a value and a transposed parameter or input of the graph, by that value."""
    found: dict[fx.Node, list[fx.Node]] = {}
    for node in graph.nodes:
        call = read_call(node)
        if call is None or call.operator.name != "matmul":
            continue
        x, weight = call["input"], call["other"]
        if isinstance(x, fx.Node) and isinstance(weight, fx.Node) and _is_transposed(weight):
            found.setdefault(x, []).append(node)
    return found


def _is_transposed(node: fx.Node) -> bool:
    """Return whether a value is the transpose of a matrix that the graph is given or holds, in the same memory."""
    operands = node.all_input_nodes
    if len(operands) != 1 or operands[0].op not in ("placeholder", "get_attr"):
        return False
    new, old = node.meta.get("val"), operands[0].meta.get("val")
    if not isinstance(new, torch.Tensor) or not isinstance(old, torch.Tensor) or (new.ndim, old.ndim) != (2, 2):
        return False
    turned = new.shape == old.shape[::-1] and new.stride() == old.stride()[::-1]
    return turned and storage_of(new) == storage_of(old)
