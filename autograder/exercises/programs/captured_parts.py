"""Captured graphs of a task's parts: they come as data, and run in a worker that never saw the student's code.

The worker names the parameter that each input holds. A wrong name costs points only: with weights that the host draws
then, the graph gives another result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from autograder.exercises.programs import lightning_runs
from autograder.host.artifacts import Artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.analysis import AnalysisAnswer, graph_in_report
from autograder.host.kinds.reports import Report, items
from autograder.host.session import AnswerFailedError

LARGEST_SEED = 10**6
MAX_GRAPHS, MAX_NODES = 20, 60
HIDDEN, SIZE = "hidden", "size"


@dataclass(frozen=True)
class CapturedGraph:
    """One graph, and what its inputs are: names of parameters, `hidden` or `size`."""

    artifact: Artifact
    inputs: tuple[str, ...]


def read_captured(found: Any) -> list[CapturedGraph]:
    """Return the graphs of a report, checked and rebuilt by the host."""
    told = "In a captured graph: "
    written = items(found, (dict,))
    if len(written) > MAX_GRAPHS:
        raise CheckFailedError(f"{len(written)} graphs were captured; no task here needs more than {MAX_GRAPHS}.")
    graphs = []
    for each in written:
        if items(each.get("own"), (str,)):
            raise CheckFailedError(f"{told}it holds tensors of its own. Its parameters must be the task's.")
        artifact = graph_in_report(each.get("graph"), told, max_nodes=MAX_NODES)
        names = tuple(items(each.get("inputs"), (str,)))
        if len(names) != artifact.inputs:
            raise MalformedAnswerError
        graphs.append(CapturedGraph(artifact, names))
    return graphs


def require_computed(
    answer: AnalysisAnswer, draw: Draw, graphs: Sequence[CapturedGraph], about: str, kind: str, sizes: Sequence[int]
) -> None:
    """Raise `CheckFailedError` unless each part of the task is a graph, right on fresh weights and batches."""
    for name, part in lightning_runs.parts_of(kind, draw.integer(0, LARGEST_SEED)).items():
        weights = {f"{name}.{own}": parameter.detach() for own, parameter in part.named_parameters()}
        mine = [graph for graph in graphs if weights.keys() & set(graph.inputs)]
        if not mine:
            raise CheckFailedError(
                f"{about} no captured graph reads the parameters of the part `{name}`. Wrap its own forward."
            )
        for graph, size in ((graph, size) for graph in mine for size in sizes):
            batch = lightning_runs.rows(draw.integer(0, LARGEST_SEED), size)
            with torch.no_grad():
                expected = part(batch)
            _require_run(
                answer, graph, weights | {HIDDEN: batch, SIZE: size}, expected, f"{about} the graph of `{name}`"
            )


def _require_run(
    answer: AnalysisAnswer, graph: CapturedGraph, known: Report, expected: torch.Tensor, about: str
) -> None:
    if graph.inputs.count(HIDDEN) != 1 or not known.keys() >= set(graph.inputs):
        raise CheckFailedError(f"{about} reads tensors that are neither its parameters nor its input.")
    try:
        reply = answer.graphs.run(graph.artifact, cast("Any", [known[name] for name in graph.inputs]))
    except AnswerFailedError as error:
        raise CheckFailedError(
            f"{about} does not run for a batch of {len(expected)}: {error.message[:160]} Let the size of a batch be "
            "dynamic."
        ) from None
    (output, *_) = reply.outputs or (torch.zeros(0),)
    alike = (output.shape, output.dtype) == (expected.shape, expected.dtype)
    if not alike or not torch.allclose(output, expected, atol=1e-4):
        raise CheckFailedError(f"{about} gives other numbers than the part. Capture the whole part, as it is.")
