"""Run one node on fake tensors, and say what it did: to which memory, and to the random state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn

from course_lib.graph.origins import unseen_in_call, unseen_in_method, unseen_in_module
from course_lib.graph.recorder import Effects, Recorder, is_foreign, storages_in, tensors_of
from course_lib.module_classes import reads_its_mode

# Functions that raise an error or return. They give no data, and change nothing for later operators.
_CHECKS = (torch._assert, torch._check, torch._check_is_size, torch._check_index, torch._check_value)
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


def run_node(
    recorder: Recorder, node: fx.Node, module: nn.Module | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, Effects]:
    """Return the result of a node on these operands, which are fake tensors and plain values, and its effects.

    `module` is the module that the node calls, with stand-ins for its tensors. It runs in its own mode and in the
    other, because a graph may be trained and evaluated, and its effects are those of both runs.
    """
    operands = [tensor for value in (*args, *kwargs.values()) for tensor in tensors_of(value)]
    call, unseen = _call(node, module, args, kwargs)
    held = [value for value in args[:1] if type(value) in (list, dict, set)]
    contents = [_contents(value) for value in held]
    other = None
    classes: list[Any] = [] if module is None else [type(part) for part in module.modules()]
    if module is not None and any(map(reads_its_mode, classes)):
        other = _in_other_mode(recorder, module, call, operands)
    written = _written_by_name(recorder, node.target, args, kwargs)
    result, effects, calls = recorder.record(call, operands)
    if other is not None:
        recorder.stand_ins.join(effects.gives | other.gives & recorder.stand_ins.storages.union(storages_in(operands)))
        effects |= other
    if [_contents(value) for value in held] != contents:
        unseen = f"it changes a {type(held[0]).__name__} of Python"
    switches = not unseen and node.op == "call_function" and _switches(node, effects, calls, operands, result)
    if isinstance(node.target, _OPERATORS) and is_foreign(node.target):
        effects = replace(effects, draws=True)
    effects = replace(effects, writes=effects.writes | recorder.stand_ins.joined(written))
    unseen = unseen or effects.unseen
    if unseen:
        given = storages_in((operands, list(module.parameters()) + list(module.buffers()) if module else ()))
        effects = replace(effects, reads=effects.reads | given, writes=effects.writes | given, draws=True)
    return result, replace(effects, unseen=unseen, switches=switches, operands=values_of_operands(node))


def _written_by_name(recorder: Recorder, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> frozenset[int]:
    """Return the storages that a call is said to write: by its schema, or by a name that ends in `_`.

    Autograd answers some calls itself, and no operator is seen: `detach_` cuts its operand off from its gradients.
    """
    if isinstance(target, torch._ops.OpOverload):
        declared = recorder.declared(target, args, kwargs)
        return declared.writes if declared is not None else frozenset()
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    return storages_in((args[:1], kwargs.get("input"), kwargs.get("self"))) if in_place else frozenset()


def values_of_operands(node: fx.Node) -> tuple[object, ...]:
    """Return the fake values of the nodes that a node reads; None where a shape is not known."""
    return tuple([operand.meta.get("val") for operand in node.all_input_nodes])


def _call(
    node: fx.Node, module: nn.Module | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[[], Any], str]:
    """Return the call of a node, and why it cannot be observed."""
    target: Any = node.target
    given = (*node.args, *node.kwargs.values())
    if module is not None:
        return lambda: module(*args, **kwargs), unseen_in_module(module)
    if node.op == "call_method":
        value, *rest = args
        return lambda: getattr(value, target)(*rest, **kwargs), unseen_in_method(value, target, given)
    return lambda: target(*args, **kwargs), unseen_in_call(target, given)


def _in_other_mode(
    recorder: Recorder, module: nn.Module, call: Callable[[], Any], operands: Sequence[torch.Tensor]
) -> Effects | None:
    """Return the effects of a module in the mode in which it is not; None if it cannot run in that mode."""
    flags = [(part, part.training) for part in module.modules()]
    try:
        module.train(not module.training)
        return recorder.record(call, operands)[1]
    except Exception:  # a BatchNorm in training refuses a batch of one value, and always will with these shapes
        return None
    finally:
        for part, flag in flags:
            part.training = flag


def _switches(node: fx.Node, effects: Effects, calls: int, operands: Sequence[torch.Tensor], result: object) -> bool:
    """Return whether a function of PyTorch acts on something else than tensors: on modes, defaults or the seed."""
    if calls or operands or isinstance(node.target, _OPERATORS) or node.target in _CHECKS or tensors_of(result):
        return False
    of_python = getattr(node.target, "__module__", None) in ("_operator", "math", "builtins")
    return not of_python and (effects.silent or not node.all_input_nodes)


def _contents(value: Any) -> list[int]:
    parts = (*value.keys(), *value.values()) if isinstance(value, dict) else tuple(value)
    return [id(part) for part in parts]
