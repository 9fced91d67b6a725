"""Answers that collect graphs: the host sends a program to the worker, and the worker sends the graphs back as data.

The host checks the graphs by running them: each graph must compute the same as the expected piece of the program.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host import comparison, shared_inputs
from autograder.host.artifacts import Artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, as_tuple, placed
from autograder.host.kinds.captured import CapturedAnswer
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.graph import read_graph
from autograder.host.session import AnswerFailedError
from autograder.protocol import Result
from autograder.protocol.requests.answers import Collect, CollectedGraphs

MAX_GRAPHS = 20
MAX_NODES = 200
UNIT = 1.0  # the magnitude of the numbers that steps such as `h - h.mean()` work on, also where the result is small


@dataclass(frozen=True)
class Piece:
    """One expected graph: a function of its inputs, in the order in which the program names them."""

    formula: Callable[..., Any]
    inputs: tuple[tuple[int, ...], ...]  # shapes
    given: Callable[..., Any] | None = None  # what Dynamo's graph computes before the backend has it, if it matters


@dataclass(frozen=True)
class Source:
    """A program as text, which the worker runs, and its expected results and graphs."""

    name: str  # of the function; completes "For ..."
    text: str
    formula: Callable[..., torch.Tensor]  # of a whole call
    calls: Callable[..., Sequence[Case]]  # drawn with a `Draw`
    pieces: Sequence[Piece] = field(default=())


@dataclass(frozen=True)
class Collected:
    """The results and graphs that came back."""

    results: tuple[torch.Tensor, ...]
    graphs: tuple[Artifact, ...]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]  # of each graph's example inputs, as the answer reports them
    given: tuple[Artifact, ...] = ()  # as Dynamo gave them to the backend


def collect(answer: CapturedAnswer, source: Source, cases: Sequence[Case]) -> Collected:
    """Let the answer collect the graphs of one program on some calls."""
    tensors: list[torch.Tensor] = []
    calls = tuple(placed(case.args, case.kwargs, tensors) for case in cases)
    given = any(piece.given for piece in source.pieces)
    reply, _ = answer.student.call(Collect("", source.text, source.name, calls, given), tensors)
    return _read(reply)


def _read(reply: Result[CollectedGraphs]) -> Collected:
    count, graphs = reply.body.results, reply.body.graphs
    if count > len(reply.tensors):
        raise MalformedAnswerError
    if len(graphs) > MAX_GRAPHS:
        raise CheckFailedError(f"{len(graphs)} graphs were collected; no program here has more than {MAX_GRAPHS}.")
    results, rest = reply.tensors[:count], reply.tensors[count:]
    artifacts = []
    for written in (*(entry.graph for entry in graphs), *reply.body.given[:MAX_GRAPHS]):
        own, told = len(written.paths), "In a graph that was collected: "
        artifacts.append(read_graph(Result(written, rest[:own]), told, max_nodes=MAX_NODES))
        rest = rest[own:]
    shapes = tuple(entry.shapes for entry in graphs)
    kept, given = tuple(artifacts[: len(graphs)]), tuple(artifacts[len(graphs) :])
    return Collected(tuple(map(shared_inputs.to_torch, results)), kept, shapes, given)


def require_results(found: Collected, source: Source, cases: Sequence[Case]) -> None:
    """Raise `CheckFailedError` unless each call gave one result, equal to that of the program."""
    if len(found.results) != len(cases):
        raise CheckFailedError(
            f"For `{source.name}`: {len(found.results)} results came back from {len(cases)} calls; expected one a call."
        )
    for number, (result, case) in enumerate(zip(found.results, cases, strict=True)):
        eager = source.formula(*case.args, **case.kwargs)
        double = {name: a.double() for name, a in case.kwargs.items()}
        truth = source.formula(*(a.double() for a in case.args), **double)
        comparison.require_close(
            result, truth, eager, f"For `{source.name}`: the result of call {number}", magnitude=UNIT
        )


def require_pieces(answer: CapturedAnswer, found: Collected, source: Source, draw: Any) -> None:
    """Raise `CheckFailedError` unless the graphs compute the same as the program's pieces, in order."""
    if len(found.graphs) != len(source.pieces):
        raise CheckFailedError(
            f"For `{source.name}`: {len(found.graphs)} graphs were collected; Dynamo makes {len(source.pieces)} of it."
        )
    for number, (artifact, piece) in enumerate(zip(found.graphs, source.pieces, strict=True)):
        inputs = [draw.normal(*shape) for shape in piece.inputs]
        where = f"For `{source.name}`: graph {number}"
        require_given(answer, found, number, source, inputs)
        try:
            reply = answer.run(artifact, inputs)
        except AnswerFailedError as error:
            raise CheckFailedError(f"{where} does not run on inputs of its shapes: {error.message}") from None
        eagers = as_tuple(piece.formula(*inputs))
        truths = as_tuple(piece.formula(*(i.double() for i in inputs)))
        if len(reply.outputs) != len(eagers):
            raise CheckFailedError(f"{where} gives {len(reply.outputs)} outputs; the program's has {len(eagers)}.")
        for output, truth, eager in zip(reply.outputs, truths, eagers, strict=True):
            comparison.require_close(output, truth, eager, f"{where}: an output", magnitude=UNIT)


def require_given(
    answer: CapturedAnswer, found: Collected, number: int, source: Source, inputs: Sequence[torch.Tensor]
) -> None:
    """Raise `CheckFailedError` unless Dynamo gave the backend a graph of the program as it was, where that matters."""
    formula, where = source.pieces[number].given, f"For `{source.name}`: graph {number}"
    if formula is None:
        return
    told = (
        f"{where} was another one than the program's before the backend got it. Leave program and PyTorch as they are, "
        "and change the graph in the backend."
    )
    if number >= len(found.given):
        raise CheckFailedError(told)
    try:
        reply = answer.run(found.given[number], inputs)
    except AnswerFailedError:
        raise CheckFailedError(told) from None
    eagers, truths = as_tuple(formula(*inputs)), as_tuple(formula(*(i.double() for i in inputs)))
    try:
        for output, truth, eager in zip(reply.outputs, truths, eagers, strict=True):
            comparison.require_close(output, truth, eager, where, magnitude=UNIT)
    except (CheckFailedError, ValueError):
        raise CheckFailedError(told) from None


def require_shapes(found: Collected, source: Source) -> None:
    """Raise `CheckFailedError` unless each graph was kept with the shapes of its example inputs."""
    for number, (kept, piece) in enumerate(zip(found.shapes, source.pieces, strict=False)):
        shapes, expected = list(map(list, kept)), list(map(list, piece.inputs))
        if shapes != expected:
            raise CheckFailedError(
                f"For `{source.name}`: graph {number} was kept with the shapes "
                f"{contrasted(shapes, expected, between='; its example inputs have ')}."
            )
