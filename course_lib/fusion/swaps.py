"""Exchanging two dimensions by other means than `transpose`: `x.mT`, and `x.permute(0, 1, 3, 2)`."""

import torch
from torch import fx

_PERMUTING = (torch.permute, torch.ops.aten.permute.default)


def swapped_dimensions(node: fx.Node) -> tuple[int, int] | None:
    """Return the two dimensions that a node exchanges, negative ones counted from the last; None for other nodes.

    >>> graph = fx.symbolic_trace(lambda x: x.permute(0, 2, 1)).graph
    >>> swapped_dimensions(list(graph.nodes)[1])
    (1, 2)
    """
    if node.op == "call_function" and node.target is getattr:
        return (-2, -1) if node.args[1:] == ("mT",) else None
    if (node.op, node.target) != ("call_method", "permute") and node.target not in _PERMUTING:
        return None
    given = node.args[1:] or tuple(value for name, value in node.kwargs.items() if name == "dims")
    dims = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    if not all(type(dim) is int for dim in dims):
        return None
    rank = len(dims)
    dims = [dim % rank for dim in dims]  # type: ignore[operator]  # integers, as just seen
    moved = [place for place, dim in enumerate(dims) if dim != place]
    return (moved[0], moved[1]) if len(moved) == 2 else None
