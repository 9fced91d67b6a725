"""What is known about the value of a node without running the graph."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class TensorFacts:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def tensor_facts(node: torch.fx.Node) -> TensorFacts | None:
    """Return shape and dtype of what `node` gives, or None if they are unknown or it gives no single tensor.

    Known are the results of all nodes once `course_lib.graph.propagate_shapes` has run, and parameters always.
    """
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if value is None and node.op == "get_attr":
        value = _attribute(node)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(dtype, torch.dtype) or shape is None:
        return None
    return TensorFacts(tuple(shape), dtype)


def _attribute(node: torch.fx.Node) -> object:
    value: object = node.graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    return value
