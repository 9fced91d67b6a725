"""Archive: TorchScript programs, scripted in the student's worker and run in a clean one."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Count, Done, Json, Request
from autograder.protocol.requests.callable import Arguments


@dataclass(frozen=True)
class ScriptFunction(Request[Done]):
    """Script a function of the answer's cell; the bytes of its archive come as one tensor."""

    function: str


@dataclass(frozen=True)
class ScriptModule(Request[Done]):
    """Script the module that the entry point makes of `build`; the bytes of its archive come as one tensor."""

    build: tuple[Json, ...]
    state: Mapping[str, int]
    """The names of its state to the numbers of their tensors."""


@dataclass(frozen=True)
class ArchiveRun:
    """How many of the tensors each call gave."""

    outputs: tuple[Count, ...]


@dataclass(frozen=True)
class RunArchive(Request[ArchiveRun]):
    """Make calls one after the other on one freshly loaded program."""

    calls: tuple[Arguments, ...]


@dataclass(frozen=True)
class ArchiveNode:
    """A node of an optimised TorchScript graph."""

    kind: str
    """Such as "aten::add", "prim::If" or "prim::TensorExprGroup"."""
    blocks: tuple[tuple["ArchiveNode", ...], ...] = ()
    """The bodies of an If or a Loop."""
    subgraph: tuple["ArchiveNode", ...] = ()
    """The nodes of a fusion group or of a differentiable graph."""


@dataclass(frozen=True)
class ArchiveGraph:
    """The optimised graph."""

    nodes: tuple[ArchiveNode, ...]


@dataclass(frozen=True)
class DescribeArchive(Request[ArchiveGraph]):
    """Make calls until the executor has fused, and describe the graph that it runs then."""

    calls: tuple[Arguments, ...]
