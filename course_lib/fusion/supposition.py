"""The effects of a node whose operands are not known: it runs on made-up ones.

What a function of PyTorch writes, and whether it draws random numbers, does not depend on shapes. So a node of a graph
without shapes runs on small fake tensors of several shapes, until one run succeeds. If none does, the schemas of its
name decide; a node that no schema describes may do anything.
"""

import functools
import inspect
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.capture.isolation import preserving
from course_lib.fusion.calls import module_of, read_call
from course_lib.graph.memory import storage_of
from course_lib.graph.node_effects import run_node
from course_lib.graph.origins import is_observable, unseen_in_module
from course_lib.graph.recorder import UNKNOWN, Effects, Recorder
from course_lib.graph.stand_ins import StandIns, tensors_held

_RANKS = ((4, 4), (4, 4, 4, 4), (4, 4, 4), (4,), (4, 4, 4, 4, 4))
_ANY = frozenset((UNKNOWN,))


def supposed_effects(node: fx.Node) -> Effects:
    """Return the effects of a node on operands of any shape."""
    found = _of_known_operator(node) or _of_a_trial(node) or _of_schemas(node)
    return replace(found, supposed=True)


def is_declared_to_write(node: fx.Node) -> bool:
    """Return whether the schema or an argument of a call says that it writes in place; nothing is run.

    This is for graphs whose author is not trusted. Calls of PyTorch are described by schemas, or by `inplace` and
    `out`; for others the answer is False.
    """
    if node.kwargs.get("out") is not None:
        return True
    if node.op == "call_module":
        return bool(getattr(module_of(node), "inplace", False))
    call = read_call(node)
    if call is not None:
        return call.in_place
    if node.op == "call_function" and _given(node, "inplace"):
        return True
    name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", "")
    plain = name.strip("_")
    if node.op == "call_method" or getattr(node.target, "__module__", "") == "_operator":
        in_place = name != plain or node.op == "call_function"
        if in_place and (plain in ("setitem", "delitem") or _is_augmented(plain)):
            return True
    packet = _packet(node)
    return packet is not None and any(map(_writes, (getattr(packet, one) for one in packet.overloads())))


def _is_augmented(name: str) -> bool:
    """Return whether a function of `operator` writes: `iadd` is `add` in place, and `index` is no `ndex` in place."""
    plain = name.removeprefix("i")
    return plain != name and (hasattr(operator, plain) or hasattr(operator, f"{plain}_"))


def _given(node: fx.Node, parameter: str) -> bool:
    """Return whether a call gives `parameter` a value other than False, by name or by position."""
    position = _position(node.target, parameter)
    if position is not None and position < len(node.args):
        return bool(node.args[position])
    return bool(node.kwargs.get(parameter, False))


@functools.cache
def _position(function: object, parameter: str) -> int | None:
    """Return the position of `parameter` in a function's signature, or None if it is unknown."""
    try:
        names = list(inspect.signature(function).parameters)  # type: ignore[arg-type]  # what is no function raises
    except (TypeError, ValueError):  # a builtin without a signature takes such a parameter only by name
        return None
    return names.index(parameter) if parameter in names else None


def _writes(overload: torch._ops.OpOverload) -> bool:
    """Return whether an operator writes an argument other than `out`."""
    arguments = overload._schema.arguments
    return any(one.alias_info is not None and one.alias_info.is_write and not one.is_out for one in arguments)


def _of_known_operator(node: fx.Node) -> Effects | None:
    """Return the effects of an operator in the table of spellings; None for others, and for running statistics."""
    call = read_call(node)
    if call is None or call.operator.name == "batch_norm" or not call.exact_module:
        return None
    if call.module is not None and unseen_in_module(call.module):
        return None
    probability = call.arguments.get("p", call.arguments.get("dropout_p"))
    off = call.arguments.get("training") is False or (probability == 0 and not isinstance(probability, bool))
    held = frozenset() if call.module is None else _held(call.module)
    return Effects(
        reads=_ANY | held,
        writes=_ANY if call.in_place else frozenset(),
        gives=_ANY,
        draws=call.operator.random and not off,
    )


def _of_a_trial(node: fx.Node) -> Effects | None:
    """Return the effects of the first run on made-up operands that succeeds; None if none does."""
    module = module_of(node) if node.op == "call_module" else None
    if (module is not None and unseen_in_module(module)) or not (module or _is_own(node)):
        return None
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    stand_ins = StandIns(mode)
    recorder = Recorder(stand_ins)
    twin = None if module is None else stand_ins.twin(module)
    with preserving(None), mode, torch.no_grad():
        for values in _made_up(node, module):
            args: Any = fx.map_arg(node.args, values.__getitem__)  # type: ignore[arg-type]  # any values
            kwargs: Any = fx.map_arg(node.kwargs, values.__getitem__)  # type: ignore[arg-type]  # any values
            try:
                effects = run_node(recorder, node, twin, args, kwargs)[1]
            except Exception:  # an operator may say anything about operands that do not fit
                continue
            return _generalised(effects, node, module, stand_ins)
    return None


def _generalised(effects: Effects, node: fx.Node, module: nn.Module | None, stand_ins: StandIns) -> Effects:
    """Return effects on any operands: those on a module's own tensors are known, and others concern any memory."""
    own = {storage_of(stand_ins.of(tensor)): tensor for tensor in tensors_held(module)} if module is not None else {}
    held = frozenset() if module is None else _held(module)
    shown = {storage_of(tensor) for tensor in _attributes(node.graph)}

    def of(storages: frozenset[int]) -> frozenset[int]:
        real = {storage_of(own[storage]) for storage in storages & own.keys()}
        return frozenset(one if one in shown else -one for one in real) | (
            _ANY if storages - own.keys() else frozenset()
        )

    return replace(effects, reads=_ANY | held, writes=of(effects.writes), gives=_ANY, stand_ins=None)


def _held(module: nn.Module) -> frozenset[int]:
    """Return the storages of a module's tensors, as memory that others see and as memory of its own."""
    storages = {storage_of(tensor) for tensor in tensors_held(module)}
    return frozenset(storages | {-storage for storage in storages})


def _attributes(graph: fx.Graph) -> Iterator[torch.Tensor]:
    owner = graph.owning_module
    for node in graph.find_nodes(op="get_attr") if owner is not None else ():
        value: Any = owner
        for part in str(node.target).split("."):
            value = getattr(value, part, None)
        if isinstance(value, torch.Tensor):
            yield value


def _made_up(node: fx.Node, module: nn.Module | None) -> Iterator[Mapping[fx.Node, object]]:
    """Yield operands: tensors of one shape each time, or one tensor and numbers."""
    operands = node.all_input_nodes
    dtype = next((one.dtype for one in module.parameters()), torch.float32) if module is not None else torch.float32
    for shape, kind in itertools.product(_shapes(module), (dtype, torch.int64)):
        made = torch.ones(shape, dtype=kind)
        yield dict.fromkeys(operands, made)
        if len(operands) > 1:
            yield {operand: made if operand is operands[0] else 1 for operand in operands}


def _shapes(module: nn.Module | None) -> Sequence[tuple[int, ...]]:
    """Return shapes to try: those with the sizes of a module's weights come first."""
    sizes = {size for tensor in module.parameters() for size in tensor.shape[:2]} if module is not None else set[int]()
    fitting = [
        shape for size in sorted(sizes) for rank in _RANKS for shape in ((*rank[:-1], size), _second(rank, size))
    ]
    return (*dict.fromkeys(fitting), *_RANKS)


def _second(rank: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (rank[0], size, *(8 for _ in rank[2:])) if len(rank) > 1 else (size,)


def _of_schemas(node: fx.Node) -> Effects:
    """Return what the schemas of an operator's name say; a node that has none may do anything."""
    anything = Effects(_ANY, _ANY, _ANY, draws=True, unseen="its effects are not known")
    if node.op == "call_module":
        return replace(anything, unseen=unseen_in_module(module_of(node)) or anything.unseen)
    if not _is_own(node):
        return replace(anything, unseen=f"{node.target} is a function from outside of PyTorch")
    packet = _packet(node)
    if packet is None:
        # A function of Python that no tensor takes works on numbers, which nothing can change.
        of_python = node.op == "call_function" and getattr(node.target, "__module__", "") in ("_operator", "math")
        return Effects(reads=_ANY, gives=_ANY) if of_python else anything
    overloads = [getattr(packet, name) for name in packet.overloads()]
    if not all(overload._schema.returns for overload in overloads):
        return replace(anything, unseen=f"{node.target} gives nothing, so it acts on something else")
    writes = any(map(_writes, overloads)) or node.kwargs.get("out") is not None
    draws = any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)
    return Effects(_ANY, _ANY if writes else frozenset(), _ANY, draws=draws)


def _is_own(node: fx.Node) -> bool:
    if node.op == "call_method":
        return hasattr(torch.Tensor, str(node.target)) or hasattr(dict, str(node.target))
    return is_observable(node.target)


def _packet(node: fx.Node) -> torch._ops.OpOverloadPacket | None:
    """Return the operator of the dispatcher that a node calls, whatever its spelling; None if there is none."""
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target.overloadpacket
    if isinstance(target, torch._ops.OpOverloadPacket):
        return target
    name = str(target) if node.op == "call_method" else str(torch.jit._builtins._find_builtin(target) or "")
    found = getattr(torch.ops.aten, name.removeprefix("aten::"), None) if name else None
    return found if isinstance(found, torch._ops.OpOverloadPacket) else None
