"""What Inductor makes of a program, counted in a clean worker: kernels and bytes moved, after fusion.

An eager count would charge each operator, and say nothing of what fusion leaves. The counts are exact and the same on
every machine. They are those of a worker that never saw the student's code: the graph was checked by the host, or the
program is the host's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import as_tuple
from autograder.host.kinds.captured import Captured, CapturedAnswer, operators, require_captured
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Message

KEYS = {"generated_kernels", "library_calls", "bytes_moved", "graphs", "fused_loops"}


@dataclass(frozen=True)
class Lowered:
    """What Inductor's code for a program costs."""

    generated_kernels: int
    library_calls: int
    bytes_moved: int
    graphs: int  # more than one after a graph break
    fused_loops: int  # loops after fusion, several of which may lie in one kernel on a CPU, and calls of a library's


def lower_graph(clean: Session, artifact: Artifact, inputs: Sequence[torch.Tensor]) -> Lowered:
    """Lower a checked graph for ``inputs``; raises `AnswerFailedError` if Inductor cannot."""
    load = {"mode": "lowered", "graph": artifact.graph, "paths": list(artifact.tensors)}
    clean.reload(load, [shared_inputs.to_raw(t) for t in artifact.tensors.values()])
    return _read(clean.call({}, inputs)[0])


def lower_steps(clean: Session, steps: Mapping[str, Any], config: Mapping[str, Any]) -> Lowered:
    """Lower a program of the host's (see `course_lib.models.program_from_steps`) with these options of Inductor."""
    if clean.load != {"mode": "lowered"}:
        clean.reload({"mode": "lowered"}, ())
    return _read(clean.call({"steps": dict(steps), "config": dict(config)})[0])


def _read(reply: Message) -> Lowered:
    if set(reply.body) != KEYS or not all(type(number) is int for number in reply.body.values()):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    return Lowered(**reply.body)


def minimum_bytes(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> int:
    """Every input read once, every output written once."""
    return sum(t.numel() * t.element_size() for t in (*inputs, *outputs))


@dataclass(frozen=True)
class Advice:
    """What to say of a graph that still calls one of these operators."""

    packets: tuple[str, ...]  # of torch.ops.aten
    says: str


def reaches_minimum(
    *wanted: Captured, most: float, advice: Mapping[str, Sequence[Advice]]
) -> Callable[[CapturedAnswer, Draw], None]:
    """A check that each function is one graph with the reference's results, for which few bytes are moved.

    ``most`` is the largest ratio of bytes moved to the minimum, and ``advice`` belongs to names of members.
    """

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        def require(each: Captured) -> None:
            artifact = require_captured(answer, each, draw)
            _require_few_bytes(answer, artifact, each, draw, most, advice.get(each.member, ()))

        share_among(wanted, require, noun="functions", where=lambda each: each.told)

    return run


def _require_few_bytes(
    answer: CapturedAnswer, artifact: Artifact, wanted: Captured, draw: Draw, most: float, advice: Sequence[Advice]
) -> None:
    inputs = wanted.example(draw)
    least = minimum_bytes(inputs, as_tuple(wanted.reference(*inputs)))
    try:
        cost = lower_graph(answer.clean, artifact, inputs)
    except AnswerFailedError as error:
        raise CheckFailedError(f"{wanted.told}{error.message[:300]}") from None
    answer.counted |= {f"{wanted.member}_bytes": cost.bytes_moved, f"{wanted.member}_bytes_minimum": least}
    if cost.graphs != 1:
        raise CheckFailedError(f"{wanted.told}Inductor gets it in {cost.graphs} graphs; keep it in one.")
    if cost.bytes_moved > most * least:
        says = next((a.says for a in advice if _calls(artifact, a.packets)), "")
        raise CheckFailedError(
            f"{wanted.told}Inductor moves {cost.bytes_moved:,} bytes in {cost.fused_loops} kernel(s), "
            f"{cost.bytes_moved / least:.2f} times the minimum of {least:,}; {most:g} is allowed. {says}".rstrip()
        )


def _calls(artifact: Artifact, packets: Sequence[str]) -> bool:
    return any(name.split(".")[3:4] == [p] for name in operators(artifact) for p in packets)
