"""What is counted for an operator is not less than what the profiler sees, for all that a graph may call.

The rule: an operator of which some overload has a kernel for a CPU is one launch. Any other is as many launches as the
operators that it calls. A launch touches more than `SMALL` elements; less are numbers, and the sizes of an index. It
moves at least its operands, each once, and of a table as many rows as indices.

What a function runs below, a graph may call, too: a recorded graph has these operators in its place.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._C import DispatchKey
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.graph import Cost, cost
from course_lib.graph.cost import GATHERS
from course_lib.graph.data.targets import METHODS, functions
from course_lib.graph.memory import Region
from course_lib.graph.operator_calls import is_free
from tests.course_lib.graph.fitting_operands import fitting

aten = torch.ops.aten
SMALL = 4
CASE = "one case"
# Operators below functions of the list that no graph may call: they return uninitialised memory, draw other numbers in
# each run, make a number of a tensor, or have no formula in the counter of operations.
_BELOW_ONLY = """
    empty.memory_format empty_like.default new_empty.default bernoulli.default bernoulli_.float
    _local_scalar_dense.default _trilinear.default
"""
BELOW_ONLY = {f"torch.ops.aten.{name}" for name in _BELOW_ONLY.split()}
Call = tuple[str, Callable[..., object], Callable[[], tuple[Any, ...]]]
CHECK = "torch.ops.aten._assert_scalar.default"  # of a number; nothing here is one


def _x() -> torch.Tensor:
    return torch.rand(6, 8)


MORE: dict[str, tuple[Callable[..., object], Callable[[], tuple[Any, ...]]]] = {
    "a loss that is summed": (functools.partial(F.mse_loss, reduction="sum"), lambda: (_x(), _x())),
    "a loss that is not reduced": (functools.partial(F.mse_loss, reduction="none"), lambda: (_x(), _x())),
    "attention with dropout": (
        functools.partial(F.scaled_dot_product_attention, dropout_p=0.5),
        lambda: (torch.rand(2, 2, 6, 8),) * 3,
    ),
    "dropout in one call": (aten.native_dropout.default, lambda: (_x(), 0.5, True)),
    "dropout in one call, not in training": (aten.native_dropout.default, lambda: (_x(), 0.5, False)),
    "a logarithm of sums, dimensions kept": (aten.logsumexp.default, lambda: (_x(), [0], True)),
    "torch.ops.aten.nonzero.default": (aten.nonzero.default, lambda: (_x(),)),
    "a fill where an index points": (aten.index_put.default, lambda: (_x(), [torch.zeros(5).long()], torch.rand(8))),
}


def _on_first(name: str, first: Any, *rest: Any) -> object:
    return getattr(first, name)(*rest)


def _needs_keyword(function: object) -> bool:
    arguments = function._schema.arguments if isinstance(function, torch._ops.OpOverload) else []
    return any(one.kwarg_only and not one.has_default_value() for one in arguments)


@functools.cache
def _calls() -> tuple[Call, ...]:
    return tuple(_fitting_calls())


def _fitting_calls() -> Iterator[Call]:
    apart = ("torch.ops.course_lib.", "builtins.", "math.", CHECK, *MORE)  # the course's operators have other tests
    names = {name: one for name, one in functions().items() if not name.startswith(apart) and not _needs_keyword(one)}
    names |= {f"method {name}": functools.partial(_on_first, name) for name in METHODS}
    for name in names:
        make = fitting(names[name])
        assert make is not None, f"no operands of fitting_operands.py fit {name}: add a line there"
        yield name, names[name], make
    for name, (function, make) in MORE.items():
        yield name, function, make


@functools.cache
def _overloads(name: str) -> tuple[torch._ops.OpOverload, ...]:
    """Return the overloads that the dispatcher knows; TorchScript has more, which compute with numbers."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None) if name.startswith("aten::") else None
    overloads = [getattr(packet, overload) for overload in packet.overloads()] if packet is not None else []
    return tuple(overload for overload in overloads if torch._C._dispatch_has_kernel(overload.name()))


@functools.cache
def _is_kernel(name: str) -> bool:
    return any(overload.has_kernel_for_dispatch_key(DispatchKey.CPU) for overload in _overloads(name))


@functools.cache
def _may_launch(name: str) -> bool:
    """Return whether an operator that calls no other is a launch: not a view, and not one that returns its operand."""
    implicit = DispatchKey.CompositeImplicitAutograd
    return not any(is_free(one) or one.has_kernel_for_dispatch_key(implicit) for one in _overloads(name))


def _launches(event: Any) -> Iterator[Any]:
    """Yield the events that are launches, of an event and those below it."""
    below = [launch for child in event.children for launch in _launches(child)]
    is_operator = event.typed[0] == _EventType.TorchOp and _overloads(event.name)
    if not is_operator or (below and not _is_kernel(event.name)):
        yield from below
    elif _may_launch(event.name) and any(_elements(one) > SMALL for one in _tensors(event)):
        yield event


def _tensors(event: Any) -> Iterator[Any]:
    for value in event.typed[1].inputs:
        yield from (one for one in (value if isinstance(value, list) else [value]) if hasattr(one, "sizes"))


def _elements(tensor: Any) -> int:
    """Return how many different elements a tensor has in memory."""
    sizes = (size for size, stride in zip(tensor.sizes, tensor.strides, strict=True) if stride != 0)
    return torch.Size(sizes).numel()


def _bytes(launch: Any) -> int:
    tensors = list(_tensors(launch))
    if launch.name in GATHERS:
        tensors = tensors[1:]
    found: dict[Region, int] = {}
    for one in tensors:
        place = one.storage_data_ptr, tuple(one.sizes), tuple(one.strides), one.dtype
        found[place] = _elements(one) * one.dtype.itemsize
    return sum(found.values())


def _seen(calls: Iterable[Call]) -> Iterator[list[Any]]:
    """Yield the launches that the profiler sees in each call."""
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        for _, function, make in calls:
            operands = make()
            with record_function(CASE):
                function(*operands)
    assert profiled.profiler is not None
    roots = profiled.profiler.kineto_results.experimental_event_tree()
    for event in roots:
        if event.name == CASE:
            yield list(_launches(event))


def _counted(function: Callable[..., object], operands: tuple[Any, ...]) -> Cost:
    with torch.no_grad():
        return cost(lambda: function(*operands), ())


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, on how it is called here
def test_no_operator_counts_less_than_the_profiler_sees() -> None:
    calls, wrong = _calls(), []
    for (name, function, make), launches in zip(calls, _seen(calls), strict=True):
        counted, least = _counted(function, make()), sum(map(_bytes, launches))
        if counted.launches < len(launches) or counted.bytes_moved < least:
            names = [launch.name.removeprefix("aten::") for launch in launches]
            wrong.append(f"{name}: {counted.operators}, {counted.bytes_moved} bytes; seen {names}, {least} bytes")
    assert not wrong, "\n".join(wrong)


class _Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(f"torch.ops.{func}")
        return func(*args, **(kwargs or {}))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_graph_may_call_what_the_functions_run_below() -> None:
    refused = {}
    for name, function, make in _calls():
        operands = make()
        with _Names() as below:
            function(*operands)
        if others := below.seen - functions().keys() - BELOW_ONLY:
            refused[name] = others
    assert not refused
