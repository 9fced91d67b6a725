"""Answers that are TorchScript programs: an archive is sent as bytes, checked, and run in a clean worker.

The student's worker scripts the answer and saves it. The host opens the archive as data only (see
`autograder.host.artifacts.torchscript_archive`) and sends the repacked archive to a worker without the student's
Python. That worker runs it on fresh inputs, and reports which nodes of the optimised graph lie in which fusion group.
Expected outputs stay in the host.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts.torchscript_archive import ArchiveRefusedError, checked_archive
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, placed
from autograder.host.kinds.sent_tensors import other_values
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Done, RawTensor, Request, Result
from autograder.protocol.requests.answers import Arguments, ScriptFunction, ScriptModule
from autograder.protocol.requests.loads import ArchiveNode, DescribeArchive, LoadArchive, RunArchive

FUSED = "prim::TensorExprGroup"
MAX_NODES = 5_000
R = TypeVar("R")


@dataclass
class ArchiveAnswer:
    """Have the student's programs scripted in one worker, and run them in another.

    The archive of a function is taken from the worker once, so that all checks describe and run the same bytes.
    """

    student: Session
    clean: Session
    counted: dict[str, float] = field(default_factory=dict)
    _functions: dict[str, bytes] = field(default_factory=dict)

    def function(self, name: str) -> bytes:
        """Return the checked archive of the function `name` of the answer's cell."""
        if name not in self._functions:
            self._functions[name] = self._archive(ScriptFunction(name), ())
        return self._functions[name]

    def module(self, build: Sequence[Any], state: Mapping[str, torch.Tensor]) -> bytes:
        """Return the checked archive of the module that the entry point makes from `build`, with the host's `state`.

        A module with other weights is scripted first, so that one that keeps the first weights of each size is wrong.
        """
        request = ScriptModule(tuple(build), {name: i for i, name in enumerate(state)})
        self.student.call_with(request, [shared_inputs.to_raw(other_values(t)) for t in state.values()])
        return self._archive(request, [shared_inputs.to_raw(t) for t in state.values()])

    def run(self, archive: bytes, calls: Sequence[Case]) -> list[tuple[torch.Tensor, ...]]:
        """Return the outputs of `calls`, made one after the other on one freshly loaded program.

        Raises `CheckFailedError` if a call of the student's program fails.
        """
        result = self._call(archive, calls, RunArchive)
        counts = result.body.outputs
        if len(counts) != len(calls) or sum(counts) != len(result.tensors):
            raise MalformedAnswerError
        tensors = iter([shared_inputs.to_torch(raw) for raw in result.tensors])
        return [tuple(next(tensors) for _ in range(n)) for n in counts]

    def optimised(self, archive: bytes, calls: Sequence[Case]) -> tuple[ArchiveNode, ...]:
        """Return the graph that the executor makes of the program after several runs of each of `calls`."""
        nodes = self._call(archive, calls, DescribeArchive).body.nodes
        require_few(nodes)
        return nodes

    def _archive(self, request: Request[Done], tensors: Sequence[RawTensor]) -> bytes:
        reply = self.student.call_with(request, tensors)
        if len(reply.tensors) != 1 or reply.tensors[0].dtype != "uint8":
            raise MalformedAnswerError
        try:
            return checked_archive(bytes(reply.tensors[0].data))
        except ArchiveRefusedError as error:
            raise CheckFailedError(str(error)) from None

    def _call(
        self, archive: bytes, calls: Sequence[Case], request: Callable[[tuple[Arguments, ...]], Request[R]]
    ) -> Result[R]:
        tensors: list[torch.Tensor] = []
        made = request(tuple(placed(case.args, case.kwargs, tensors) for case in calls))
        try:
            self.clean.reload(LoadArchive(), [RawTensor.of_bytes(archive)])
            reply, _ = self.clean.call(made, tensors)
        except AnswerFailedError as error:
            where = calls[-1].where if calls else ""
            raise CheckFailedError(f"The scripted program does not run{where}: {error.message[:600]}") from None
        return reply


def require_few(nodes: Sequence[ArchiveNode]) -> None:
    """Raise `MalformedAnswerError` for a graph with more than `MAX_NODES` nodes."""
    left, count = [nodes], 0
    while left:
        for node in left.pop():
            count += 1
            left += [*node.blocks, node.subgraph]
        if count > MAX_NODES:
            raise MalformedAnswerError("The worker sent a graph of another form.")


def every_node(nodes: Sequence[ArchiveNode]) -> Iterator[ArchiveNode]:
    """Yield the nodes of a graph, and those inside of them, at any depth."""
    for node in nodes:
        yield node
        for inner in (*node.blocks, node.subgraph):
            yield from every_node(inner)


def groups(nodes: Sequence[ArchiveNode]) -> list[tuple[str, ...]]:
    """Return the operators of each fusion group, in order and without constants, at any depth."""
    found = []
    for node in nodes:
        if node.kind == FUSED:
            found.append(tuple(n.kind for n in node.subgraph if n.kind != "prim::Constant"))
        else:
            found += [group for inner in (*node.blocks, node.subgraph) for group in groups(inner)]
    return found


def outside(nodes: Sequence[ArchiveNode]) -> Iterator[str]:
    """Yield the ATen operators on tensors that are in no fusion group; those on sizes and lists do not count."""
    for node in nodes:
        if node.kind.startswith("aten::") and node.tensors:
            yield node.kind
        if node.kind != FUSED:
            for inner in (*node.blocks, node.subgraph):
                yield from outside(inner)
