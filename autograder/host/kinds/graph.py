"""Answers that are passes: the graph they return is rebuilt, and run and counted in a clean worker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact, ArtifactRefusedError, read_artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, Reply, placed_call, read_called
from autograder.host.kinds.sent_tensors import Sent, other_values
from autograder.host.session import Session
from autograder.host.traced import Traced
from autograder.protocol import Result
from autograder.protocol.requests.answers import Called, CallTransformed, InputForm, Transform, WrittenGraph
from autograder.protocol.requests.loads import CallGraph, CountStep, LoadAnswer, LoadGraph, ObserveWrites, StepCost


@dataclass
class GraphAnswer:
    """Call the student's pass in one worker, and run its graph in a worker that never saw the student's code."""

    student: Session
    clean: Session
    counted: dict[str, float] = field(default_factory=dict)
    right: set[str] = field(default_factory=set)
    """The names of programs whose graphs passed the gate of a training step."""
    _held: "_Held | None" = field(default=None, init=False, repr=False)

    def transform(self, program: Traced, *, own: bool = False) -> Artifact:
        """Return the graph that the pass makes of `program`, checked and rebuilt by the host.

        With `own`, it may call operators that the answer makes of Triton kernels.
        Its tensors must be those of the program, unless the program allows folding. A program with tensors is sent
        twice, first with other values, so that a pass that keeps the first tensors of each size gives wrong ones.
        """
        request = _request(program)
        if program.tensors:
            self.student.call_with(request, [shared_inputs.to_raw(other_values(t)) for t in program.tensors.values()])
        reply = self.student.call_with(request, [shared_inputs.to_raw(t) for t in program.tensors.values()])
        told = f"In the program {program.program.name}: "
        texts = self._texts() if own else None
        artifact = read_graph(reply, told, max_nodes=4 * len(program.graph["nodes"]) + 64, texts=texts)
        if not program.program.folds:
            Sent.of_graph(program.graph, program.tensors).require_kept(artifact, told)
        return artifact

    def called(self, program: Traced, inputs: Sequence[torch.Tensor], *, outdated: bool) -> Reply:
        """Return what the module computes that the pass makes of `program`; it may get one that is not compiled."""
        call, placed = placed_call(Case(tuple(inputs)))
        tensors = map(shared_inputs.to_raw, (*program.tensors.values(), *placed))
        result = self.student.call_with(CallTransformed(_request(program), call, outdated), list(tensors))
        return read_called(result.body, result.tensors, (), 0)

    def _texts(self) -> dict[str, str]:
        load = self.student.load
        assert isinstance(load, LoadAnswer), "the judge gives the answer's parts"
        return {part.name: part.text for part in load.parts if part.name != "setup"}

    def drawn_by_position(self, artifact: Artifact, inputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """Return which draws of a rebuilt graph are those of its own kernels."""
        if not artifact.own.declared:
            return ()
        self._hold(artifact, None)
        call, tensors = placed_call(Case(tuple(inputs)), (), ())
        return self.clean.call(CallGraph(call, True, False, 0), tensors)[0].body.by_position

    def run(
        self,
        artifact: Artifact,
        inputs: Sequence[torch.Tensor],
        *,
        cotangents: Sequence[torch.Tensor] = (),
        count: bool = False,
        training: bool = False,
        draws: int | None = None,
        by: Sequence[str] = (),
    ) -> Reply:
        """Run a rebuilt graph on `inputs`; with `cotangents` also run backward, with `count` also count its cost.

        It runs in evaluation mode; with `training`, its modules keep the modes in which they were sent. With `draws`,
        its dropouts have the masks that follow from this seed, see `ReplayedDraws`. Gradients by the parameters named
        in `by` follow those by the inputs.
        """
        self._hold(artifact, None if training else False)
        return self._call(inputs, cotangents, restored=True, count=count, draws=draws, by=by)

    def run_again(self, inputs: Sequence[torch.Tensor]) -> Reply:
        """Run the last graph once more, without restoring the tensors that it holds."""
        return self._call(inputs, (), restored=False, count=False)

    def writes(self, artifact: Artifact, inputs: Sequence[torch.Tensor]) -> tuple[str, ...]:
        """Return the nodes that write into a tensor that was there before them when the graph runs on `inputs`."""
        self._hold(artifact, False)
        call, tensors = placed_call(Case(tuple(inputs)))
        found = self.clean.call(ObserveWrites(call), tensors)[0].body.nodes
        if not artifact.called.keys() >= set(found):
            raise MalformedAnswerError
        return found

    def count_step(
        self, artifact: Artifact, inputs: Sequence[torch.Tensor], *, by: Sequence[str], draws: int
    ) -> tuple[StepCost, Reply]:
        """Return the counters of a training step of a rebuilt graph, and the loss and gradients of this very step."""
        self._hold(artifact, None)
        result, mutated = self.clean.call(CountStep(tuple(by), draws), list(inputs))
        called = Called(1, False, result.body.gradients, ())
        return result.body.cost, read_called(called, result.tensors, mutated, len(by))

    def _call(
        self,
        inputs: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        *,
        restored: bool,
        count: bool,
        draws: int | None = None,
        by: Sequence[str] = (),
    ) -> Reply:
        call, tensors = placed_call(Case(tuple(inputs)), cotangents, range(len(inputs)) if cotangents else ())
        result, mutated = self.clean.call(CallGraph(call, restored, count, draws, tuple(by)), tensors)
        reply = read_called(result.body.called, result.tensors, mutated, len(call.wrt) + len(by))
        return replace(reply, cost=result.body.cost)

    def _hold(self, artifact: Artifact, training: bool | None) -> None:
        """Load the graph into the clean worker, unless it is already there and unchanged."""
        versions = [t._version for t in artifact.tensors.values()]
        held, self._held = self._held, None
        if (
            held is None
            or held.artifact is not artifact
            or held.load is not self.clean.load
            or (held.load.training, held.versions) != (training, versions)
        ):
            own = artifact.own
            load = LoadGraph(
                artifact.graph, tuple(artifact.tensors), training, operators=own.declared, kernels=own.kernels
            )
            self.clean.reload(load, [shared_inputs.to_raw(t) for t in artifact.tensors.values()])
            held = _Held(artifact, load, versions)
        self._held = held


@dataclass(frozen=True)
class _Held:
    """The graph that the clean worker holds, and the versions of its tensors when they were sent."""

    artifact: Artifact
    load: LoadGraph
    versions: list[int]


def _request(program: Traced) -> Transform:
    forms = tuple(InputForm(s.shape, str(s.dtype).removeprefix("torch.")) for s in program.program.inputs)
    return Transform(program.graph, tuple(program.tensors), forms)


def read_graph(
    reply: Result[WrittenGraph], told: str, *, max_nodes: int, texts: Mapping[str, str] | None = None
) -> Artifact:
    """Return the graph in a reply, checked and rebuilt; if it is refused, the message begins with `told`.

    With the answer's `texts` it may call operators of its own.
    """
    try:
        return read_artifact(reply, max_nodes=max_nodes, texts=texts)
    except ArtifactRefusedError as error:
        raise CheckFailedError(f"{told}{error}") from None


def times(count: int) -> str:
    """Return a number of calls in words: never, once, twice, 3 times."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
