"""Captured: functions to the graphs captured from them.

`member` names one of the functions in the dict that the entry point returns; empty for the entry point itself.
"""

from dataclasses import dataclass
from typing import Literal

from autograder.protocol.contract import Count, GraphData, Json, Request, TensorName
from autograder.protocol.requests.callable import Arguments, Called, TensorCall
from autograder.protocol.requests.graph import WrittenGraph
from autograder.protocol.requests.value import Value

How = Literal["dynamo", "dispatch"]
"""With Dynamo, in one graph; or the operators that reach ATen when the function runs once."""


@dataclass(frozen=True)
class Capture(Request[WrittenGraph]):
    """Capture a function for the tensors that come with the request."""

    member: str
    how: How
    dynamic: tuple[tuple[int, ...], ...]
    """For each input the dimensions whose size is to stay open."""


@dataclass(frozen=True)
class AskMember(Request[Value]):
    """Call a function with plain data."""

    member: str
    question: Json


@dataclass(frozen=True)
class CallMember(Request[Called]):
    """Call a function on tensors, without a capture."""

    member: str
    call: TensorCall


@dataclass(frozen=True)
class CollectedGraph:
    """One graph that the answer kept, and what it says of the shapes of its example inputs."""

    graph: GraphData
    paths: tuple[TensorName, ...]
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CollectedGraphs:
    """How many results came back, and the graphs; the tensors are the results, then those of the graphs."""

    results: Count
    graphs: tuple[CollectedGraph, ...]


@dataclass(frozen=True)
class Collect(Request[CollectedGraphs]):
    """Let the answer collect the graphs of a program of the host's on some calls.

    `program` is the source text that defines the function `name`.
    """

    member: str
    program: str
    name: str
    calls: tuple[Arguments, ...]
