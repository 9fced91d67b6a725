"""Get the graph that is timed, and check what timed rounds cannot show.

A pass sees the sizes of the program that is timed, so it may return another graph for it than for those of the checks.
Timed rounds verify every output. Here the host finds out whether the graph was made from the program at all, and from
its weights alone.
"""

from dataclasses import replace

import torch

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.kinds.graph_values import require_equal
from autograder.host.speed import Speed
from autograder.host.traced import Continuation, TensorSpec, Traced, draw_inputs, traced

ROWS = 129  # enough for values; the size that is timed may be larger than a reply


def timed_graph(answer: GraphAnswer, speed: Speed, program: Traced, draw: Draw) -> Artifact:
    """Return the answer's graph of `program`, and give both other weights than the answer saw.

    So what an answer computed from weights beforehand gives wrong outputs in every timed round. A pass must also
    rewrite the same program with drawn steps behind it, and a schedule a model of more layers, so that no finished
    graph stands for a rewrite. Raises `CheckFailedError`.
    """
    if speed.graph_of is not None:
        artifact = speed.graph_of(answer, program)
        if speed.longer is not None:
            other = speed.longer(draw)
            continued = traced(other.program, draw)
            assert other.graph_of is not None, "it is of the same kind"
            _require_same_calls(answer, artifact, other.graph_of(answer, continued), continued, draw)
    else:
        artifact = answer.transform(program)
        continued = traced(program.program, draw, Continuation.drawn(draw))
        _require_same_calls(answer, artifact, answer.transform(continued), continued, draw)
    if program.program.folds:
        return artifact
    _redraw_alike(program, draw)
    return artifact.with_tensors(program.tensors)


def _require_same_calls(
    answer: GraphAnswer, artifact: Artifact, longer: Artifact, continued: Traced, draw: Draw
) -> None:
    """Require that the graph of a longer program is right, and has the calls of the timed graph in their order."""
    calls = iter(longer.called.values())
    if not all(call in calls for call in artifact.called.values()):
        raise CheckFailedError(
            f"The graph of the program {continued.program.name} that was to be timed calls other operators than the "
            "graph of the same program with more steps or layers behind it; rewrite what fits, whatever follows."
        )
    continued.redraw(draw)
    inputs = draw_inputs(_with_fewer_rows(continued), draw)
    require_equal(answer, continued, longer.with_tensors(continued.tensors), inputs, draw, False)


def _with_fewer_rows(program: Traced) -> list[TensorSpec]:
    """Return the inputs with at most `ROWS` rows; every tensor that begins with the first input's rows has them."""
    specs = program.program.inputs
    rows = specs[0].shape[0]
    return [
        replace(s, shape=(min(rows, ROWS), *s.shape[1:])) if len(s.shape) > 1 and s.shape[0] == rows else s
        for s in specs
    ]


def _redraw_alike(program: Traced, draw: Draw) -> None:
    """Give every parameter fresh values of the same magnitude, which a deep model may depend on."""
    with torch.no_grad():
        for parameter in program.module.parameters():
            if parameter.numel():
                size = float(parameter.double().square().mean().sqrt())
                parameter.copy_(draw.normal(*parameter.shape, dtype=parameter.dtype) * size)
