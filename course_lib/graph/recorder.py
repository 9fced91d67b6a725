"""Record what a call does besides giving its result, while it runs once on fake tensors.

Every operator that the call reaches says by its schema which tensors it writes, and by its tags whether it draws random
numbers. Nothing is concluded from a name, so a function that calls three operators has the effects of all three.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.graph.memory import storage_of
from course_lib.graph.stand_ins import StandIns

EFFECTS = "effects"  # metadata key of a node
UNKNOWN = 0  # stands for memory that may be that of any tensor
_aten = torch.ops.aten
# Operators whose schema says less than they do: with `training` or `train`, they write the running statistics.
_UPDATING = (_aten.native_batch_norm, _aten.cudnn_batch_norm, _aten.miopen_batch_norm)
# Operators whose result no operand determines: memory that nothing has been written to. No tag says so.
_BLANK = (
    _aten.empty, _aten.empty_like, _aten.empty_permuted, _aten.empty_quantized, _aten.empty_strided, _aten.new_empty,
    _aten.new_empty_strided,
)  # fmt: skip
_DEVICE = torch.ops.prim.device.default  # asks for a property
_TRUSTED_NAMESPACES = ("aten", "prim", "prims", "course_lib")  # whose operators are tagged, or known to draw nothing
_DATA = (
    torch.Tensor, bool, int, float, complex, str, tuple, list, dict, slice, torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.SymInt, torch.SymFloat, torch.SymBool,
)  # fmt: skip


@dataclass(frozen=True)
class Effects:
    """What a call did, or may do. Storages are those of fake tensors, and existed before the call."""

    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    gives: frozenset[int] = frozenset()
    """The storages of its results, those among them that are new."""
    draws: bool = False
    """Whether it advances the random state."""
    blank: bool = False
    """Whether it gives memory that nothing has been written to."""
    silent: bool = False
    """Whether it gives no data, so that it runs for its effect only: an assertion, or a switch."""
    switches: bool = False
    """Whether it may change how later operators run, such as the start of autocast."""
    unseen: str = ""
    """Why it cannot be observed. Then it may do anything: write, read, draw, and print."""
    operands: tuple[object, ...] = field(default=(), compare=False, repr=False)
    """The values of the nodes that it read. The record holds as long as the operands have these values."""
    supposed: bool = False
    """Whether the operands were made up, because their shapes were not known."""
    stand_ins: StandIns | None = field(default=None, compare=False, repr=False)

    def __or__(self, other: "Effects") -> "Effects":
        """Return what either of two runs may do."""
        return replace(
            self,
            reads=self.reads | other.reads,
            writes=self.writes | other.writes,
            gives=self.gives | other.gives,
            draws=self.draws or other.draws,
            blank=self.blank or other.blank,
        )


@dataclass(frozen=True)
class _Facts:
    """What schema and tags say about one operator."""

    writes: tuple[tuple[int, str], ...]  # positions and names of the arguments
    draws: bool
    foreign: bool  # whether it is of a library that does not tag operators that draw
    blank: bool
    composite: bool  # whether it is a formula of other operators, which are recorded in its place
    updates: bool  # whether it writes the running statistics, which its schema does not say


class Recorder(TorchDispatchMode):
    """Note the operators of each call; `record` returns what they did."""

    supports_higher_order_operators = True

    def __init__(self, stand_ins: StandIns) -> None:
        super().__init__()
        self.stand_ins = stand_ins
        self._start()

    def _start(self) -> None:
        self._reads, self._writes, self._blank = set[int](), set[int](), set[int]()
        self._draws, self._calls, self._unseen = False, 0, ""
        self._alive: list[torch.Tensor] = []  # so that no storage of the call takes the number of another

    def record(self, call: Callable[[], Any], operands: Sequence[torch.Tensor]) -> tuple[Any, Effects, int]:
        """Return the result of a call, what it did, and how many operators it reached."""
        self._start()
        before = [_metadata(operand) for operand in operands]
        with self:
            result = call()
        known = self.stand_ins.storages.union(storage for storage, *_ in before)
        altered = {
            int(old[0]) for operand, old in zip(operands, before, strict=True) if _metadata(operand) != old
        }  # by `requires_grad_`, `retain_grad` or `set_`
        gives = storages_in(result)
        effects = Effects(
            reads=frozenset(self._reads & known),
            writes=self.stand_ins.joined(self._writes & known | altered),
            gives=gives,
            draws=self._draws,
            blank=bool(gives & self._blank),
            silent=not isinstance(result, _DATA),
            unseen=self._unseen,
            stand_ins=self.stand_ins,
        )
        self._alive = []
        return result, effects, self._calls

    def declared(
        self, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Effects | None:
        """Return what schema and tags of an operator say of a call that is not made; None for a formula of others."""
        facts = _facts(operator)
        if facts.composite:
            return None
        self._start()
        self._note_operands(facts, args, kwargs)
        reads, writes, self._alive = frozenset(self._reads), self.stand_ins.joined(self._writes), []
        return Effects(reads, writes, draws=self._draws, blank=facts.blank, stand_ins=self.stand_ins)

    def __torch_dispatch__(
        self, func: Any, types: Collection[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note one operator, and run it."""
        kwargs = kwargs or {}
        if func is _DEVICE:
            return func(*args, **kwargs)
        self._calls += 1
        if torch._C._current_graph_task_id() != -1:
            self._unseen = "it runs a backward pass, which depends on which tensor is which"
        if not isinstance(func, torch._ops.OpOverload):
            self._unseen = f"{func} calls other graphs"
            return func(*args, **kwargs)
        facts = _facts(func)
        if facts.composite:
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self._note_operands(facts, args, kwargs)
        result = func(*args, **kwargs)
        made = _tensors(result)
        self._alive += made
        if facts.blank:
            self._blank.update(map(storage_of, made))
        return result

    def _note_operands(self, facts: _Facts, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        tensors = _tensors(args) + (_tensors(kwargs.values()) if kwargs else [])
        self._alive += tensors
        self._reads.update(map(storage_of, tensors))
        written, draws = _written_and_drawn(facts, args, kwargs)
        if written:
            self._writes |= written
            self._blank -= written
        self._draws |= draws or facts.foreign


def written_and_drawn(
    operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[set[int], bool]:
    """Return the storages that a call of an operator writes, and whether it is known to draw random numbers."""
    return _written_and_drawn(_facts(operator), args, kwargs)


def _written_and_drawn(facts: _Facts, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[set[int], bool]:
    written: list[torch.Tensor] = []
    for position, name in facts.writes:
        written += _tensors((args[position] if position < len(args) else kwargs.get(name),))
    if facts.updates and any(value is True for value in (*args, *kwargs.values())):
        written += _tensors(args[3:5])
    return set(map(storage_of, written)), facts.draws and kwargs.get("dropout_p", True) != 0.0


def is_foreign(operator: torch._ops.OpOverload | torch._ops.OpOverloadPacket) -> bool:
    """Return whether an operator is of a library that does not tag those that draw random numbers."""
    return str(operator).partition(".")[0] not in _TRUSTED_NAMESPACES


def storages_in(value: object) -> frozenset[int]:
    """Return the storages of the tensors in a nest of containers."""
    if isinstance(value, torch.Tensor):
        return frozenset((storage_of(value),))
    return frozenset(map(storage_of, tensors_of(value)))


def meets(reads: Collection[int], writes: Collection[int]) -> bool:
    """Return whether memory that is read may be memory that is written.

    A negative number is memory of a module that no value of the graph shares.
    """
    if not reads or not writes:
        return False
    if UNKNOWN in writes or (UNKNOWN in reads and any(storage > 0 for storage in writes)):
        return True
    return not frozenset(reads).isdisjoint(writes)


def tensors_of(value: object) -> list[torch.Tensor]:
    """Return the tensors in a nest of containers; without any, this is faster than a tree walk."""
    if isinstance(value, torch.Tensor):
        return [value]
    return _tensors((value,)) if isinstance(value, (tuple, list, dict)) else []


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    found: list[torch.Tensor] = []
    for value in values if isinstance(values, Iterable) else ():
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list, dict)):
            found += [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    return found


def _metadata(tensor: torch.Tensor) -> tuple[int, torch.Size, bool, bool]:
    return storage_of(tensor), tensor.shape, tensor.requires_grad, tensor.retains_grad


@functools.cache
def _facts(operator: torch._ops.OpOverload) -> _Facts:
    schema = operator._schema
    arguments = list(schema.arguments)
    writes = [
        (position, argument.name)
        for position, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    draws = torch.Tag.nondeterministic_seeded in operator.tags
    draws = draws or any("Generator" in str(argument.type) for argument in arguments)
    packet = operator.overloadpacket
    composite = operator.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return _Facts(
        writes=tuple(writes),
        draws=draws,
        foreign=is_foreign(operator),
        blank=packet in _BLANK,
        composite=composite,
        updates=packet in _UPDATING,
    )
