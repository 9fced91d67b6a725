"""What is known about the value of a node without running the graph."""

from dataclasses import dataclass

import torch

SYMBOLIC = "symbolic"  # key in the metadata of a node that gives a tensor of another shape in each run


@dataclass(frozen=True)
class TensorFacts:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def tensor_facts(node: torch.fx.Node) -> TensorFacts | None:
    """Return shape and dtype of what `node` gives, or None if they are unknown or it gives no single tensor.

    Known are the results of all nodes once `course_lib.graph.propagate_shapes` has run, and parameters always. A size
    that is a symbol is not known, and asking for it would fix it; nor is one that was a symbol, see
    `remember_symbols`.
    """
    if SYMBOLIC in node.meta:
        return None
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if value is None and node.op == "get_attr":
        value = _attribute(node)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(dtype, torch.dtype) or shape is None or not all(type(size) is int for size in shape):
        return None
    return TensorFacts(tuple(shape), dtype)


def remember_symbols(graph: torch.fx.Graph) -> None:
    """Mark the nodes with symbols among their sizes, before example inputs put numbers in the place of symbols."""
    for node in graph.nodes:
        leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
        if any(isinstance(size, torch.SymInt) for leaf in leaves for size in (leaf, *getattr(leaf, "shape", ()))):
            node.meta[SYMBOLIC] = True


def _attribute(node: torch.fx.Node) -> object:
    value: object = node.graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    return value
