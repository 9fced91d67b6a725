"""What becomes of a graph when values lie differently in memory: who would notice.

A value that is a slice of a larger tensor has other strides, and shares its memory. Most operators do not mind: their
result is what it was. Views pass the difference on; a view that needs its elements side by side fails; and the caller
of the graph would see other strides, or two results in one memory.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_map_only

from course_lib.fusion.mutation import mutates
from course_lib.fusion.owned import module_of
from course_lib.fusion.rules import Objection
from course_lib.graph.shapes import describe_tensor


def relaid(values: dict[fx.Node, object]) -> list[fx.Node] | Objection:
    """Find out what the readers of changed values give now, and add those that give something else to `values`.

    `values` are fake tensors, and the caller has their mode switched on. Returns all nodes that were tried, or objects
    if someone would notice: a node that fails or that gives another number, or the output.
    """
    tried: list[fx.Node] = []
    waiting = {user for node in values for user in node.users if user not in values}
    while waiting:
        node = min(waiting)  # in graph order, so that every operand is final
        waiting.remove(node)
        changed = next(operand for operand in node.all_input_nodes if operand in values)
        if node.op == "output":
            return Objection("strides", f"the graph returns {changed}, which would be laid out differently")
        if mutates(node) or "val" not in node.meta:
            return Objection("strides", f"what {node} does with {changed} may depend on how it is laid out")
        try:
            result = run(node, values)
        except Exception as error:  # whatever an operator says about strides
            said = " ".join(str(error).split())[:200]
            return Objection("strides", f"{node} cannot take {changed} laid out differently ({said})")
        if not _is_unchanged(result, node.meta["val"], values):
            if not all(isinstance(leaf, torch.Tensor) for leaf in tree_flatten(result)[0]):
                return Objection("strides", f"{node} tells how {changed} is laid out")
            values[node] = result
            waiting.update(node.users)
        tried.append(node)
    return tried


def run(node: fx.Node, values: Mapping[fx.Node, object]) -> object:
    """Return what a node gives for these values of its operands, and for those in the metadata of the others."""

    def value_of(operand: fx.Node) -> Any:
        return values[operand] if operand in values else operand.meta["val"]

    args: Any = fx.map_arg(node.args, value_of)
    kwargs: Any = fx.map_arg(node.kwargs, value_of)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    if node.op != "call_module":
        function: Any = node.target
        return function(*args, **kwargs)
    module = module_of(node)
    if not module.training:
        return module(*args, **kwargs)
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}  # a BatchNorm counts its calls in one
    return torch.func.functional_call(module, buffers, args, kwargs)


def describe_relaid(values: Mapping[fx.Node, object]) -> None:
    """Write the new values into the metadata of their nodes."""
    for node, value in values.items():
        node.meta["val"] = value
        node.meta["tensor_meta"] = tree_map_only(torch.Tensor, describe_tensor, value)


def _is_unchanged(new: object, old: object, values: Mapping[fx.Node, object]) -> bool:
    """Return whether a result has the strides that it had, in memory of its own."""
    ours, theirs = tree_flatten(new), tree_flatten(old)
    if ours[1] != theirs[1]:
        return False
    changed = {_memory(leaf) for value in values.values() for leaf in tree_flatten(value)[0]}
    return all(
        _layout(one) == _layout(other) and (_memory(one) is None or _memory(one) not in changed)
        for one, other in zip(ours[0], theirs[0], strict=True)
    )


def _layout(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype, value.device
    return type(value), value


def _memory(value: object) -> int | None:
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None
