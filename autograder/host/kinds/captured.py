"""Answers whose graph is graded: a function is captured in its worker, which sends the graph as data.

The host trusts no statement of the worker about a capture. It rebuilds the graph from the allow-list, counts calls in
it, and runs it in a clean worker on inputs that the function never saw. A graph that is right on these inputs contains
the whole function, so the function was captured in one piece.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import (
    Case,
    Reference,
    Reply,
    as_tuple,
    placed_call,
    read_called,
    require_gradients,
    require_outputs,
)
from autograder.host.kinds.graph import GraphAnswer, read_graph
from autograder.host.kinds.misconceptions import Misconception, explained
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError
from autograder.protocol import Json
from autograder.protocol.requests.answers import AskMember, CallFunction, Capture, How

MAX_NODES = 1_500  # a loop over tiles is written out
Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Captured:
    """A function to capture, and its reference: the graph must give the reference's results on every case.

    If the entry point returns a dict, `member` names a function in it. `example` draws the inputs for the capture, and
    `cases` those for the runs. Sizes may differ in the dimensions that `dynamic` lists for each input.
    """

    reference: Reference
    example: Callable[[Draw], Tensors]
    cases: Callable[[Draw], Iterable[Case]]
    names: Sequence[str] = ("the output",)
    member: str = ""
    how: How = "dynamo"
    dynamic: Sequence[Sequence[int]] = ()
    misconceptions: Sequence[Misconception] = ()
    reason: str = ""  # why these inputs are hard, for a wrong result that no misconception explains

    @property
    def told(self) -> str:
        """Return the start of a sentence about this function."""
        return f"`{self.member}`: " if self.member else ""


@dataclass
class CapturedAnswer(GraphAnswer):
    """Capture the student's functions in one worker, and run the graphs in a worker that never saw the student's code.

    Each graph is requested once, and must be right on the inputs of all checks.
    """

    _captured: dict[str, Artifact] = field(default_factory=dict)

    def capture(
        self, inputs: Tensors, *, member: str = "", how: How = "dynamo", dynamic: Sequence[Sequence[int]] = ()
    ) -> Artifact:
        """Return the graph that the function gives for inputs such as these, checked and rebuilt by the host.

        The function gets the numbers in other places, so results that it computes outside of the graph are wrong.
        """
        request = Capture(member, how, tuple(map(tuple, dynamic)))
        key = repr((request, [(i.shape, i.stride(), i.dtype) for i in inputs]))
        if key not in self._captured:
            reply, _ = self.student.call(request, [_in_other_places(i) for i in inputs])
            told = f"`{member}`: " if member else ""
            self._captured[key] = read_graph(reply, told, max_nodes=MAX_NODES)
        return self._captured[key]

    def ask(self, question: Json, *, member: str = "") -> Json:
        """Call a function of the answer with plain data and return its result, which is plain data."""
        return self.student.call(AskMember(member, question))[0].body.value

    def call(self, case: Case, *, member: str = "") -> Reply:
        """Call a function of the answer without a capture and return its result."""
        call, tensors = placed_call(Case(case.args))
        result, mutated = self.student.call(CallFunction(member, call), tensors)
        return read_called(result.body, result.tensors, mutated, 0)


def _in_other_places(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same form with its floating-point numbers in an order that nobody can guess from them."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return tensor
    order = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(secrets.randbits(63)))
    moved = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())  # of an expanded one
    moved[once].copy_(tensor.reshape(-1)[order].view(tensor.shape)[once])
    return moved


def captures(*wanted: Captured, gradients: bool = False) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that each function is captured as one graph that gives the reference's results.

    The functions share its points equally. With `gradients`, gradients by all floating-point inputs are checked too.
    """

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        share_among(
            wanted,
            lambda each: require_captured(answer, each, draw, gradients=gradients),
            noun="functions",
            where=lambda each: each.told,
        )

    return run


def require_captured(answer: CapturedAnswer, wanted: Captured, draw: Draw, *, gradients: bool = False) -> Artifact:
    """Capture a graph, compare it with the reference on every case, and return it."""
    example = wanted.example(draw)
    artifact = answer.capture(example, member=wanted.member, how=wanted.how, dynamic=wanted.dynamic)
    require_inputs(artifact, len(example), wanted.told)
    for case in wanted.cases(draw):
        require_right(answer, artifact, wanted, case, draw, gradients=gradients)
    return artifact


def require_inputs(artifact: Artifact, count: int, told: str = "") -> None:
    """Raise `CheckFailedError` unless the graph takes `count` inputs."""
    if artifact.inputs != count:
        raise CheckFailedError(f"{told}the captured graph takes {artifact.inputs} inputs; expected {count}.")


def require_right(
    answer: CapturedAnswer, artifact: Artifact, wanted: Captured, case: Case, draw: Draw, *, gradients: bool = False
) -> Reply:
    """Run a graph on one case in the clean worker and require the reference's results; messages are for the student."""
    inputs = list(case.args)
    outputs = as_tuple(wanted.reference(*[i.clone() for i in inputs]))
    cotangents = [draw.normal(*o.shape, dtype=o.dtype) for o in outputs] if gradients else []
    try:
        reply = answer.run(artifact, inputs, cotangents=cotangents)
    except AnswerFailedError as error:
        said = error.message if len(error.message) <= 300 else error.message[:300] + "…"
        raise CheckFailedError(f"{wanted.told}the captured graph does not run{case.where}: {said}") from None
    try:
        require_outputs(reply, case, wanted.reference, wanted.names)
    except CheckFailedError as error:
        why = explained(reply, case, wanted.names, wanted.misconceptions)
        unexplained = f"in the captured graph {error} {wanted.reason}".rstrip()
        raise CheckFailedError(f"{wanted.told}{why or unexplained}") from None
    if reply.mutated:
        raise CheckFailedError(f"{wanted.told}the captured graph writes into its input number {reply.mutated[0]}.")
    if gradients:
        names = [f"{wanted.told}the gradient by input {number}" for number in range(len(inputs))]

        def missing(number: int) -> str:
            return f"{wanted.told}no gradient reaches input number {number}{case.where}."

        require_gradients(reply, case, wanted.reference, cotangents, names, missing)
    return reply


def require_no_write(answer: CapturedAnswer, artifact: Artifact, inputs: Tensors, told: str = "") -> None:
    """Raise `CheckFailedError` if a call of the graph writes into a tensor that was there before the call.

    The clean worker observes it while it runs the graph: by the schema of each operator that runs, whatever function,
    method or module leads to it, and by the bits of the tensors.
    """
    if writes := answer.writes(artifact, inputs):
        name = artifact.called[writes[0]].operator.removeprefix("torch.ops.")
        raise CheckFailedError(f"{told}the graph still writes, by {name}; build a new tensor instead.")


def outside(artifact: Artifact, allowed: Collection[str]) -> list[str]:
    """Return the operators of the graph, without their overload, that are not among `allowed`."""
    return [call.packet for call in artifact.called.values() if call.packet not in allowed]
