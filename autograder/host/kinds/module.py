"""Answers that are modules: a class, or a function that gives a module; the host chooses the weights.

The worker builds the module from the host's arguments, loads the host's state into it and runs it. Names and values of
the state cross, and outputs and gradients; the module itself never does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import CallableAnswer, Case, Reply, placed, read_reply
from autograder.host.session import Session
from autograder.protocol import Message

FOLDER = {"folder": True}
"""As an argument of a build: the path of an empty folder in the worker, of which every file crosses, as bytes."""


@dataclass(frozen=True)
class Build:
    """How the entry point is called to make the module; plain data, tensors and `FOLDER` may stand in it."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """What a fresh module holds, by name, in the order of its state dict; the tensors are the host's own."""

    parameters: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]
    files: Mapping[str, bytes]  # what the entry point wrote into `FOLDER`


class ModuleAnswer:
    """Has the student's module built, described and run; the clean worker is for what reads its files."""

    def __init__(self, student: Session, clean: Session) -> None:
        self.student, self.clean = student, clean

    def describe(self, build: Build, *, training: bool = False) -> Description:
        """Build the module and tell what it holds."""
        tensors: list[torch.Tensor] = []
        body = {"build": _placed(build, tensors), "training": training}
        message, _ = self.student.call(body, tensors)
        return _description(message)

    def built(self, build: Build, state: Mapping[str, torch.Tensor], *, training: bool = False) -> BuiltModule:
        """The module with the host's ``state``, to be called on tensors, also by the ready-made checks of the kit.

        It is built when it is called, and anew each time, in the precision of the state. A state that does not fit
        costs the check that calls.
        """
        return BuiltModule(self.student, build, state, training)


class BuiltModule(CallableAnswer):
    """A module with the host's weights in it."""

    def __init__(self, student: Session, build: Build, state: Mapping[str, torch.Tensor], training: bool) -> None:
        super().__init__(student)
        self.build, self.state, self.training = build, state, training

    def call(
        self,
        case: Case,
        *,
        cotangents: Sequence[torch.Tensor] = (),
        wrt: Sequence[int] = (),
        count: bool = False,
        by: Sequence[str] = (),
    ) -> Reply:
        """Call once, as a `CallableAnswer`; gradients by the parameters named ``by`` come after those of ``wrt``."""
        tensors: list[torch.Tensor] = []
        body: dict[str, Any] = {
            "args": [placed(a, tensors) for a in case.args],
            "kwargs": {k: placed(a, tensors) for k, a in case.kwargs.items()},
            "wrt": list(wrt),
            "by": list(by),
            "count": count,
            "training": self.training,
        }
        arguments = len(tensors)
        body["cotangents"] = [placed(c, tensors)["tensor"] for c in cotangents]
        body["state"] = {name: placed(value, tensors)["tensor"] for name, value in self.state.items()}
        body["build"] = _placed(self.build, tensors)
        message, mutated = self.student.call(body, tensors)
        reply = read_reply(message, mutated, len(wrt) + len(by))
        return replace(reply, mutated=tuple(i for i in reply.mutated if i < arguments))


def on_built(
    build: Callable[[ModuleAnswer, Draw], BuiltModule], run: Callable[[Any, Draw], None]
) -> Callable[[ModuleAnswer, Draw], None]:
    """A ready-made check on functions, run on the module that ``build`` makes of the answer."""

    def check(answer: ModuleAnswer, draw: Draw) -> None:
        run(build(answer, draw), draw)

    return check


def _placed(build: Build, tensors: list[torch.Tensor]) -> dict[str, Any]:
    return {
        "args": [placed(a, tensors) for a in build.args],
        "kwargs": {k: placed(a, tensors) for k, a in build.kwargs.items()},
    }


def _description(message: Message) -> Description:
    groups = [message.body.get(key) for key in ("parameters", "buffers", "files")]
    names = [name for group in groups if isinstance(group, list) for name in group]
    if not all(isinstance(g, list) for g in groups) or not all(type(n) is str and len(n) <= 1000 for n in names):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    parameters, buffers, files = (list(g) for g in groups if isinstance(g, list))
    if len(names) != len(message.tensors) or any(len(set(g)) != len(g) for g in (parameters, buffers, files)):
        raise MalformedAnswerError("The worker sent tensors that do not fit their names.")
    tensors = iter(message.tensors)
    return Description(
        {name: shared_inputs.to_torch(next(tensors)) for name in parameters},
        {name: shared_inputs.to_torch(next(tensors)) for name in buffers},
        {name: bytes(next(tensors).data) for name in files},
    )


def require_parameters(found: Description, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `CheckFailedError` unless the parameters have just these names and shapes, and there are no buffers."""
    missing = [name for name in shapes if name not in found.parameters]
    extra = [name for name in (*found.parameters, *found.buffers) if name not in shapes]
    if missing or extra:
        told = [f"lacks {', '.join(missing[:4])}"] * bool(missing) + [f"has also {', '.join(extra[:4])}"] * bool(extra)
        raise CheckFailedError(f"The state dict {' and '.join(told)}. Keep the names that the task gives.")
    for name, shape in shapes.items():
        if tuple(found.parameters[name].shape) != shape:
            given = tuple(found.parameters[name].shape)
            raise CheckFailedError(f"`{name}` has shape {given}; expected {shape} for the sizes of this check.")
