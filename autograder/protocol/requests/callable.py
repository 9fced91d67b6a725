"""Callable: tensors to tensors; also the calls of functions, modules and graphs that other kinds make."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autograder.protocol.contract import Count, Json, Request


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call or of a build.

    `{"tensor": i}` stands for tensor number `i` of the message, `{"folder": true}` for the path of an empty folder.
    """

    args: tuple[Json, ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorCall:
    """One call, backward too where `cotangents` are given."""

    arguments: Arguments
    wrt: tuple[int, ...] = ()
    """The numbers of the tensors to differentiate by."""
    cotangents: tuple[int, ...] = ()
    """For each output the number of the tensor that stands for its gradient."""


@dataclass(frozen=True)
class Called:
    """The result of a call; its tensors are the outputs, then the gradients that there are."""

    outputs: Count
    is_tuple: bool
    gradients: tuple[bool, ...]
    """For each tensor to differentiate by, whether there is a gradient."""
    aliases: tuple[int, ...]
    """The outputs that share memory with an input."""


@dataclass(frozen=True)
class CallFunction(Request[Called]):
    """Call a function of the answer; without a name its entry point."""

    function: str
    call: TensorCall


@dataclass(frozen=True)
class CalledConcurrently:
    """Two results of each call: the first one, and the first that differs from it, if any does."""

    calls: tuple[Called, ...]
    counts: tuple[Count, ...]
    """How many of the tensors belong to each."""


@dataclass(frozen=True)
class CallConcurrently(Request[CalledConcurrently]):
    """Make each call many times in a thread of its own, while the others make theirs.

    Each call counts its own tensors; `counts` says how many of the message's belong to each.
    """

    function: str
    calls: tuple[TensorCall, ...]
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class Cost:
    """The cost of running a graph once."""

    launches: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class GraphCalled:
    """The result of running a graph, and its cost where that was asked."""

    called: Called
    cost: Cost | None


@dataclass(frozen=True)
class CallGraph(Request[GraphCalled]):
    """Call the graph of a `LoadGraph`.

    With `restored` its own tensors are as they came, whatever earlier calls wrote into them.
    """

    call: TensorCall
    restored: bool
    count: bool
