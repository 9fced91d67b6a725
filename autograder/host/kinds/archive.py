"""Answers that are TorchScript programs: an archive crosses as bytes, is checked, and runs in a clean worker.

The student's worker scripts the answer and saves it. The host opens the archive as data only (see
`autograder.host.artifacts.torchscript_archive`) and sends what it has packed anew to a worker without the student's
Python. That worker runs it on fresh inputs, and tells which nodes of the optimised graph lie in which fusion group.
Expected outputs stay in the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts.torchscript_archive import ArchiveRefusedError, checked_archive
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, placed
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Message, RawTensor

FUSED = "prim::TensorExprGroup"
MAX_NODES = 5_000


@dataclass(frozen=True)
class Node:
    """A node of an optimised TorchScript graph."""

    kind: str  # "aten::add", "prim::If", "prim::TensorExprGroup"
    blocks: tuple[tuple[Node, ...], ...] = ()  # what stands inside an If or a Loop
    subgraph: tuple[Node, ...] = ()  # what a group or a differentiable graph holds


@dataclass
class ArchiveAnswer:
    """Has the student's programs scripted in one worker, and runs them in another."""

    student: Session
    clean: Session
    counted: dict[str, float] = field(default_factory=dict)

    def function(self, name: str) -> bytes:
        """The checked archive of the function ``name`` of the answer's cell."""
        return self._archive({"function": name}, ())

    def module(self, build: Sequence[Any], state: Mapping[str, torch.Tensor]) -> bytes:
        """The checked archive of the module that the entry point makes of ``build``, with the host's ``state``."""
        body = {"build": list(build), "state": {name: i for i, name in enumerate(state)}}
        return self._archive(body, [shared_inputs.to_raw(t) for t in state.values()])

    def run(self, archive: bytes, calls: Sequence[Case]) -> list[tuple[torch.Tensor, ...]]:
        """The outputs of ``calls``, made one after the other on one freshly loaded program.

        Raises `CheckFailedError` where a call fails: the student's program does, in the host's hands.
        """
        message = self._call(archive, calls, describe=False)
        counts = message.body.get("outputs")
        if (
            not isinstance(counts, list)
            or len(counts) != len(calls)
            or not all(type(n) is int and 0 <= n <= len(message.tensors) for n in counts)
            or sum(counts) != len(message.tensors)
        ):
            raise MalformedAnswerError("The worker sent a reply of another form.")
        tensors = iter([shared_inputs.to_torch(raw) for raw in message.tensors])
        return [tuple(next(tensors) for _ in range(n)) for n in counts]

    def optimised(self, archive: bytes, calls: Sequence[Case]) -> tuple[Node, ...]:
        """The graph that the executor makes of the program when it has seen ``calls``, several times each."""
        body = self._call(archive, calls, describe=True).body
        return read_nodes(body.get("graph"))

    def _archive(self, body: dict[str, Any], tensors: Sequence[RawTensor]) -> bytes:
        reply = self.student.call_with(body, tensors)
        if reply.body or len(reply.tensors) != 1 or reply.tensors[0].dtype != "uint8":
            raise MalformedAnswerError("The worker sent a reply of another form.")
        try:
            return checked_archive(bytes(reply.tensors[0].data))
        except ArchiveRefusedError as error:
            raise CheckFailedError(str(error)) from None

    def _call(self, archive: bytes, calls: Sequence[Case], *, describe: bool) -> Message:
        tensors: list[torch.Tensor] = []
        body = {
            "calls": [
                {
                    "args": [placed(a, tensors) for a in case.args],
                    "kwargs": {k: placed(a, tensors) for k, a in case.kwargs.items()},
                }
                for case in calls
            ],
            "describe": describe,
        }
        try:
            self.clean.reload({"mode": "archive program"}, [RawTensor("uint8", (len(archive),), (1,), archive)])
            reply, _ = self.clean.call(body, tensors)
        except AnswerFailedError as error:
            raise CheckFailedError(f"The scripted program does not run{_where(calls)}: {error.message[:600]}") from None
        return reply


def _where(calls: Sequence[Case]) -> str:
    return calls[-1].where if calls else ""


def read_nodes(data: Any) -> tuple[Node, ...]:
    """The nodes that a worker describes, checked for form; raises `MalformedAnswerError`."""
    budget = [MAX_NODES]

    def read(entries: Any) -> tuple[Node, ...]:
        if not isinstance(entries, list):
            raise MalformedAnswerError("The worker sent a graph of another form.")
        return tuple(one(entry) for entry in entries)

    def one(entry: Any) -> Node:
        budget[0] -= 1
        if not isinstance(entry, dict) or set(entry) != {"kind", "blocks", "subgraph"} or budget[0] < 0:
            raise MalformedAnswerError("The worker sent a graph of another form.")
        if type(entry["kind"]) is not str or not isinstance(entry["blocks"], list):
            raise MalformedAnswerError("The worker sent a node of another form.")
        return Node(entry["kind"], tuple(map(read, entry["blocks"])), read(entry["subgraph"]))

    return read(data)


def groups(nodes: Sequence[Node]) -> list[tuple[str, ...]]:
    """The operators of each fusion group, in order and without constants, wherever it lies."""
    found = []
    for node in nodes:
        if node.kind == FUSED:
            found.append(tuple(n.kind for n in node.subgraph if n.kind != "prim::Constant"))
        else:
            found += [group for inner in (*node.blocks, node.subgraph) for group in groups(inner)]
    return found


def outside(nodes: Sequence[Node]) -> Iterator[str]:
    """The ATen operators that run by themselves: those in no group."""
    for node in nodes:
        if node.kind.startswith("aten::"):
            yield node.kind
        if node.kind != FUSED:
            for inner in (*node.blocks, node.subgraph):
                yield from outside(inner)
