"""The effects of a node besides its result: changes in place, random numbers, switches, and others.

A graph shows which nodes read a value, but not what else a node does. A pass that erases, moves or merges nodes must
check these effects first. They are observed, not concluded from names: each node runs once on fake tensors, and the
operators that it reaches say what they write and whether they draw random numbers (`course_lib.graph.recorder`).

A node with code from outside of PyTorch cannot be observed. It may do anything, and nothing is moved past it.
"""

import operator
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from course_lib.fusion.calls import module_of
from course_lib.fusion.inserted_modules import CheckedFusion, Constant
from course_lib.fusion.supposition import supposed_effects
from course_lib.graph.memory import storage_of
from course_lib.graph.node_effects import run_node, values_of_operands
from course_lib.graph.recorder import EFFECTS, UNKNOWN, Effects, Recorder, storages_in
from course_lib.graph.stand_ins import StandIns
from course_lib.isolation import preserving

_NONE = Effects()
# What was found here is kept beside the nodes: a graph that somebody gives stays as it is.
_looked_up: "weakref.WeakKeyDictionary[fx.Node, Effects]" = weakref.WeakKeyDictionary()
_stand_ins: "weakref.WeakKeyDictionary[fx.Graph, StandIns]" = weakref.WeakKeyDictionary()


def effects_of(node: fx.Node) -> Effects:
    """Return what running `node` does, in training and in evaluation.

    `course_lib.graph.propagate_shapes` records it for all nodes. A node that a pass added runs now, on the fake tensors
    of its operands. Without shapes, operands are made up; then each value may share memory with any other.
    """
    if node.op in ("placeholder", "get_attr", "output"):
        return _NONE
    values = values_of_operands(node)
    for found in (node.meta.get(EFFECTS), _looked_up.get(node)):
        if found is not None and _holds(found, node, values):
            return found
    found = _looked_up[node] = _look(node)
    return found


def _holds(found: Effects, node: fx.Node, values: Sequence[object]) -> bool:
    """Return whether effects were found on these values of the operands, or on any while values are not known."""
    if found.supposed:
        return not _are_known(node)
    return len(values) == len(found.operands) and all(map(operator.is_, values, found.operands))


def mutates(node: fx.Node) -> bool:
    """Return whether running `node` may change a tensor that existed before."""
    effects = effects_of(node)
    return bool(effects.writes) or bool(effects.unseen)


def writes_its_result(node: fx.Node) -> bool:
    """Return whether a node returns memory that it changed in place, as `x.add_(1)` does."""
    effects = effects_of(node)
    return bool(effects.unseen) or (bool(effects.writes) and not effects.writes.isdisjoint(memory_of(node) | {UNKNOWN}))


def is_random(node: fx.Node) -> bool:
    """Return whether running `node` may advance the random state, in training or in evaluation."""
    return effects_of(node).draws


def is_opaque(node: fx.Node) -> bool:
    """Return whether nothing may be moved past `node`: it cannot be observed, or switches how later operators run."""
    effects = effects_of(node)
    return bool(effects.unseen) or effects.switches


def is_pure(node: fx.Node) -> bool:
    """Return whether `node` only computes its result from its operands, and has no other effect.

    These are not pure: changes in place, random numbers, assertions, switches, and all that cannot be observed.
    """
    if node.op == "get_attr":
        return True
    if node.op not in ("call_function", "call_method", "call_module"):
        return False
    if node.op == "call_module" and isinstance(module_of(node), CheckedFusion):
        return False
    effects = effects_of(node)
    return not (effects.writes or effects.draws or effects.silent or is_opaque(node))


def is_repeatable(node: fx.Node) -> bool:
    """Return whether `node` gives the same result each time it is run on the same operands: pure and initialised."""
    return is_pure(node) and not effects_of(node).blank


def between(first: fx.Node, last: fx.Node) -> Iterator[fx.Node]:
    """Yield the nodes after `first` and before `last`, in graph order; none if `last` does not follow `first`."""
    node = first.next if first < last else last
    while node is not last:
        yield node
        node = node.next


def memory_of(node: fx.Node) -> frozenset[int]:
    """Return the storages of a node's result; `UNKNOWN` among them if its shape is not known."""
    if "val" in node.meta:
        return storages_in(node.meta["val"])
    owner = node.graph.owning_module
    if node.op == "get_attr" and owner is not None:
        held = _attribute(node)
        return frozenset((storage_of(held),)) if isinstance(held, torch.Tensor) else frozenset()
    return frozenset((UNKNOWN,))


def stand_ins_of(graph: fx.Graph) -> StandIns | None:
    """Return the fake tensors that stand for what the modules of a graph hold; None if no shapes are known."""
    if graph in _stand_ins:
        return _stand_ins[graph]
    recorded = (node.meta[EFFECTS].stand_ins for node in graph.nodes if EFFECTS in node.meta)
    found: StandIns | None = next(filter(None, recorded), None)
    if found is None:
        mode = _fake_mode(graph)
        if mode is None:
            return None
        found = StandIns(mode)
        for node in graph.find_nodes(op="get_attr"):
            held = _attribute(node)
            if isinstance(held, torch.Tensor) and isinstance(node.meta.get("val"), torch.Tensor):
                found.take(held, node.meta["val"])
    _stand_ins[graph] = found
    return found


def forget(node: fx.Node) -> None:
    """Forget the effects of a node whose operands lie in other memory than before."""
    node.meta.pop(EFFECTS, None)
    _looked_up.pop(node, None)


def describe_attribute(node: fx.Node) -> None:
    """Set the `val` of a new node that reads an attribute of the graph's module."""
    stand_ins = stand_ins_of(node.graph)
    if stand_ins is not None and "val" not in node.meta:
        held = _attribute(node)
        node.meta["val"] = stand_ins.of(held) if isinstance(held, torch.Tensor) else held


def _look(node: fx.Node) -> Effects:
    """Return the effects of one run on the operands of `node`, or on made-up operands where these are not known."""
    # looked for only where they can help, since that takes a walk through a graph without any
    stand_ins = stand_ins_of(node.graph) if _can_be_known(node) else None
    if stand_ins is not None:
        for operand in node.all_input_nodes:
            if operand.op == "get_attr":
                describe_attribute(operand)
    if stand_ins is None or not _are_known(node):
        module = module_of(node) if node.op == "call_module" else None
        return _of_written(module) if isinstance(module, CheckedFusion) else supposed_effects(node)
    called = _overload(node.target)
    if called is not None and "val" in node.meta:
        args: Any = fx.map_arg(node.args, lambda operand: operand.meta["val"])
        kwargs: Any = fx.map_arg(node.kwargs, lambda operand: operand.meta["val"])
        declared = Recorder(stand_ins).declared(called, args, kwargs)
        if declared is not None:
            value, operands = node.meta["val"], values_of_operands(node)
            return replace(declared, silent=value is None, gives=storages_in(value), operands=operands)
    return effects_on(node, {operand: operand.meta["val"] for operand in node.all_input_nodes})


def _of_written(module: CheckedFusion) -> Effects:
    """Return the effects of the operators that a fusion was written with."""
    found = [effects_of(inner) for inner in module.written.graph.nodes]
    memory = frozenset((UNKNOWN,))
    writes = memory if any(one.writes for one in found) else frozenset()
    return Effects(memory, writes, memory, draws=any(one.draws for one in found), supposed=True)


def effects_on(node: fx.Node, values: Mapping[fx.Node, object]) -> Effects:
    """Return the effects of a node on these values of its operands, which are fake tensors and plain values."""
    stand_ins = stand_ins_of(node.graph)
    assert stand_ins is not None, "the values are fake tensors of this graph"
    args: Any = fx.map_arg(node.args, values.__getitem__)  # type: ignore[arg-type]  # any values
    kwargs: Any = fx.map_arg(node.kwargs, values.__getitem__)  # type: ignore[arg-type]  # any values
    try:
        with preserving(None), stand_ins.mode, torch.no_grad():
            args, kwargs = tree_map_only(torch.Tensor, _same_memory, (args, kwargs))
            module = stand_in_module(node) if node.op == "call_module" else None
            return run_node(Recorder(stand_ins), node, module, args, kwargs)[1]
    except Exception:  # whatever the operator says about its operands
        return replace(supposed_effects(node), supposed=False, operands=values_of_operands(node))


def _same_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return another tensor in the same memory, so that `t_` and `resize_` leave the metadata of a graph alone."""
    return torch.ops.aten.alias(tensor) if isinstance(tensor, FakeTensor) else tensor


def stand_in_module(node: fx.Node) -> nn.Module:
    """Return the module that a node calls, with stand-ins for its tensors, so that a run changes nothing real."""
    module, stand_ins = module_of(node), stand_ins_of(node.graph)
    if isinstance(module, CheckedFusion):
        module = module.written
    return module if isinstance(module, Constant) or stand_ins is None else stand_ins.twin(module)


def _overload(target: object) -> torch._ops.OpOverload | None:
    """Return the overload that a node calls, if there is no choice."""
    if isinstance(target, torch._ops.OpOverloadPacket) and len(target.overloads()) == 1:
        target = target.default
    return target if isinstance(target, torch._ops.OpOverload) else None


def _can_be_known(node: fx.Node) -> bool:
    return all("val" in operand.meta or operand.op == "get_attr" for operand in node.all_input_nodes)


def _are_known(node: fx.Node) -> bool:
    return all("val" in operand.meta for operand in node.all_input_nodes)


def _fake_mode(graph: fx.Graph) -> FakeTensorMode | None:
    values = (value for node in graph.nodes for value in tree_leaves(node.meta.get("val")))
    return next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)


def _attribute(node: fx.Node) -> object:
    owner = node.graph.owning_module
    return None if owner is None else attrgetter(str(node.target))(owner)
