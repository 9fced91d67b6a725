"""Count kernels and bytes moved in the code that Inductor generates for a program, in a clean worker.

An eager count would count each operator and ignore fusion. The counts are exact and the same on every machine. They
come from a worker that never saw the student's code: the host has checked the graph, or the program is the host's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import as_tuple
from autograder.host.kinds.captured import Captured, CapturedAnswer, require_captured
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Json
from autograder.protocol.requests.loads import LoadLowering, LoweredCost, LowerGraph, LowerSteps

Lowered = LoweredCost
"""The cost of Inductor's code for a program."""


def lower_graph(clean: Session, artifact: Artifact, inputs: Sequence[torch.Tensor]) -> Lowered:
    """Lower a checked graph for `inputs`; raises `AnswerFailedError` if Inductor cannot."""
    load = LoadLowering(artifact.graph, tuple(artifact.tensors))
    clean.reload(load, [shared_inputs.to_raw(t) for t in artifact.tensors.values()])
    return clean.call(LowerGraph(), inputs)[0].body


def lower_steps(clean: Session, steps: Mapping[str, Json], config: Mapping[str, Json]) -> Lowered:
    """Lower a program of the host's (see `course_lib.models.program_from_steps`) with these options of Inductor."""
    if clean.load != LoadLowering():
        clean.reload(LoadLowering(), ())
    return clean.call(LowerSteps(dict(steps), dict(config)))[0].body


def minimum_bytes(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> int:
    """Return the bytes of every input read once and every output written once."""
    return sum(t.numel() * t.element_size() for t in (*inputs, *outputs))


@dataclass(frozen=True)
class Advice:
    """The sentence for a graph that still calls one of these operators, or for any graph if there are none."""

    packets: tuple[str, ...]  # of torch.ops.aten
    says: str


def reaches_minimum(
    *wanted: Captured, most: float, advice: Mapping[str, Sequence[Advice]]
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that each function is one graph that gives the reference's results and moves few bytes.

    `most` is the largest ratio of bytes moved to the minimum, and `advice` belongs to names of members.
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
        says = next((a.says for a in advice if not a.packets or _calls(artifact, a.packets)), "")
        raise CheckFailedError(
            f"{wanted.told}Inductor moves {cost.bytes_moved:,} bytes in {cost.fused_loops} kernel(s), "
            f"{cost.bytes_moved / least:.2f} times the minimum of {least:,}; {most:g} is allowed. {says}".rstrip()
        )


def _calls(artifact: Artifact, packets: Sequence[str]) -> bool:
    return any(artifact.count(f"torch.ops.aten.{packet}") for packet in packets)
