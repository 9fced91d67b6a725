"""The memory of values: which nodes share it, which change it in place, and which depend on its layout.

Fusing moves a computation to another place in the order, so a pass must know what changes in between. All answers use
the fake tensors of `course_lib.graph.propagate_shapes`, which share a storage where real tensors would.
"""

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_only

from course_lib.fusion.effects import effects_of, forget, is_opaque, memory_of, mutates, stand_in_module
from course_lib.fusion.rules import Objection
from course_lib.graph.memory import storage_of
from course_lib.graph.recorder import UNKNOWN, meets
from course_lib.graph.shapes import describe_tensor


class Writers(tuple[fx.Node, ...]):
    """The nodes of a graph that may change a tensor in place, in graph order, indexed by changed memory."""

    @functools.cached_property
    def _by_storage(self) -> Mapping[int, Sequence[int]]:
        """Return positions of writers by the storage that they may change."""
        found: dict[int, list[int]] = {}
        for position, node in enumerate(self):
            for storage in effects_of(node).writes:
                found.setdefault(storage, []).append(position)
        return found

    @functools.cached_property
    def opaque(self) -> Sequence[fx.Node]:
        """Return the nodes past which nothing may be moved."""
        return [node for node in self if is_opaque(node)]

    def changing(self, storages: Collection[int]) -> Iterator[fx.Node]:
        """Yield the writers that may change memory that is read, in graph order."""
        if not self or not storages:
            return
        wanted = [one for one in self._by_storage if meets(storages, (one,))]
        positions = itertools.chain(*(self._by_storage[storage] for storage in wanted))
        yield from (self[position] for position in sorted(set(positions)))


def mutations_of(
    tensors: Sequence[fx.Node], *, after: fx.Node, among: Sequence[fx.Node] | None = None
) -> list[fx.Node]:
    """Return the nodes after `after` that may change the memory of one of `tensors`, also through a view.

    A caller with many queries passes `among`, the result of `mutating_nodes`, so that the graph is searched once.
    """
    return writes_to(frozenset().union(*map(memory_of, tensors)), after=after, among=among)


def changes_of_operands(node: fx.Node, *, among: Sequence[fx.Node] | None = None) -> list[fx.Node]:
    """Return the nodes after `node` that may change what it reads: operands, and tensors that its module holds."""
    return writes_to(effects_of(node).reads, after=node, among=among)


def writes_to(storages: Collection[int], *, after: fx.Node, among: Sequence[fx.Node] | None = None) -> list[fx.Node]:
    """Return the nodes after `after` that may change one of these storages."""
    writers = mutating_nodes(after.graph) if among is None else among
    indexed = writers if isinstance(writers, Writers) else Writers(writers)
    return [node for node in indexed.changing(storages) if after < node]


def mutating_nodes(graph: fx.Graph) -> Writers:
    """Return the nodes that may change a tensor in place, and those past which nothing may be moved."""
    return Writers(node for node in graph.nodes if mutates(node) or is_opaque(node))


def may_share_memory(a: fx.Node, b: fx.Node) -> bool:
    """Return False if the two values certainly lie in different memory."""
    first, second = memory_of(a), memory_of(b)
    return bool(first and second) and (UNKNOWN in first | second or not first.isdisjoint(second))


def saves(node: fx.Node, storages: Collection[int]) -> bool:
    """Return whether a node, with gradients recorded, saves a tensor in one of the storages for the backward pass.

    If such a tensor is changed in place, autograd refuses the backward pass. The node runs once on fake tensors, which
    computes nothing. If that fails, the result is True.
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
        original[storage_of(stand_in)] = storage_of(value)
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
            original.setdefault(storage_of(made), storage_of(known))
    return any(original.get(storage_of(tensor)) in storages for tensor in saved)


def propagate_layouts(values: dict[fx.Node, object]) -> list[fx.Node] | Objection:
    """Run the readers of values whose strides have changed, and add results that change too to `values`.

    A slice of a larger tensor has other strides than a tensor of its own, and shares its memory. Most operators return
    the same result. Views propagate the difference, and a view that needs contiguous elements fails.

    `values` are fake tensors, and the caller has enabled their mode. Returns all nodes that were run, or an objection
    if the difference is visible: a node fails or returns another number, or the graph returns the value.
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
            result = run_node(node, values)
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


def describe_values(values: Mapping[fx.Node, object]) -> None:
    """Write new fake values into the metadata of their nodes."""
    for node, value in values.items():
        node.meta["val"] = value
        node.meta["tensor_meta"] = tree_map_only(torch.Tensor, describe_tensor, value)
        for changed in (node, *node.users):
            forget(changed)


def run_node(node: fx.Node, values: Mapping[fx.Node, object]) -> object:
    """Return the result of a node for these values of its operands, and for the values in metadata of the others."""

    def value_of(operand: fx.Node) -> Any:
        return values[operand] if operand in values else operand.meta["val"]

    args: Any = fx.map_arg(node.args, value_of)
    kwargs: Any = fx.map_arg(node.kwargs, value_of)
    return _function(node)(*args, **kwargs)


def _function(node: fx.Node) -> Callable[..., object]:
    if node.op == "call_module":
        return stand_in_module(node)
    if node.op == "call_method":
        return lambda first, *args, **kwargs: getattr(first, str(node.target))(*args, **kwargs)
    return node.target  # type: ignore[return-value]  # that of a call of a function


def _is_unchanged(new: object, old: object, values: Mapping[fx.Node, object]) -> bool:
    """Return whether a result has its old strides and shares no memory with `values`."""
    ours, theirs = tree_flatten(new), tree_flatten(old)
    if ours[1] != theirs[1]:
        return False
    changed = {storage_of(leaf) for leaf in tree_leaves(list(values.values())) if isinstance(leaf, torch.Tensor)}
    return all(
        _layout(one) == _layout(other) and not (isinstance(one, torch.Tensor) and storage_of(one) in changed)
        for one, other in zip(ours[0], theirs[0], strict=True)
    )


def _layout(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype, value.device
    return type(value), value
