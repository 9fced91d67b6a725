"""What an operator keeps for the backward pass: if that is changed in place, autograd refuses the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from course_lib.fusion.mutation import mutates
from course_lib.fusion.owned import module_of


def saves(node: fx.Node, memories: Collection[int]) -> bool:
    """Return whether a node, with gradients recorded, keeps one of the memories, be it of an operand or of its result.

    Memories are named as in `memory_of`, after `course_lib.graph.propagate_shapes`. The node is run once on fake
    tensors, which computes nothing. Where that fails, the answer is yes.
    """
    operands = tree_leaves([operand.meta.get("val") for operand in node.all_input_nodes])
    mode = next((value.fake_mode for value in operands if isinstance(value, FakeTensor)), None)
    if mode is None:
        return False
    saved: list[torch.Tensor] = []
    original: dict[int, int] = {}
    changes = mutates(node)

    def recorded(value: object) -> object:
        if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
            return value
        leaf = value.detach().requires_grad_()
        stand_in = leaf.clone() if changes else leaf  # nothing may change a leaf in place
        original[memory_of(stand_in)] = memory_of(value)
        return stand_in

    def note(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    try:
        with mode, torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            args: Any = fx.map_arg(node.args, lambda operand: tree_map(recorded, operand.meta.get("val")))
            kwargs: Any = fx.map_arg(node.kwargs, lambda operand: tree_map(recorded, operand.meta.get("val")))
            result = _function(node)(*args, **kwargs)
    except Exception:  # whatever an operator says about operands with gradients
        return True
    for made, known in zip(tree_leaves(result), tree_leaves(node.meta.get("val")), strict=True):
        if isinstance(made, torch.Tensor):
            original.setdefault(memory_of(made), memory_of(known))
    return any(original.get(memory_of(tensor)) in memories for tensor in saved)


def memory_of(tensor: torch.Tensor) -> int:
    """Return a number that two fake tensors have in common if real ones in their place would share memory."""
    return int(tensor.untyped_storage()._cdata)


def _function(node: fx.Node) -> Callable[..., object]:
    if node.op == "call_module":
        return module_of(node)
    if node.op == "call_method":
        return lambda first, *args, **kwargs: getattr(first, str(node.target))(*args, **kwargs)
    return node.target  # type: ignore[return-value]  # that of a call of a function
