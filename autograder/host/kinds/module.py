"""Answers that are modules: a class, or a function that gives a module; the host chooses the weights.

The worker builds the module from the host's arguments, loads the host's state into it and runs it. The worker sends
names and values of the state, outputs and gradients, but never the module itself. It sends the files that it writes as
bytes, and a clean worker reads those of TensorBoard.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.host import shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import CallableAnswer, Case, Reply, placed, placed_call, read_called
from autograder.host.kinds.sent_tensors import other_values
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import RawTensor, Result
from autograder.protocol.requests.answers import CallModule, Described, DescribeModule
from autograder.protocol.requests.loads import LoadEvents, ReadEvents

MAX_EVENT_BYTES = 4 << 20
Points = tuple[tuple[int, float], ...]
FOLDER = {"folder": True}
"""Stands for the path of an empty folder in the worker as an argument of a build; its files are sent as bytes."""


@dataclass(frozen=True)
class Build:
    """The call of the entry point that makes the module; arguments are plain data, tensors or `FOLDER`."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """The contents of a fresh module, by name, in the order of its state dict; the tensors are the host's own."""

    parameters: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]
    files: Mapping[str, bytes]  # what the entry point wrote into `FOLDER`


@dataclass(frozen=True)
class Events:
    """The content of event files, as TensorBoard shows it."""

    scalars: Mapping[str, Points]  # of each tag, step and value in the order in which they were written
    graph_operators: Mapping[str, int]  # how many nodes of each; none if there is no graph
    histograms: Mapping[str, int]  # how many of each tag


class ModuleAnswer:
    """Build, describe and run the student's module in its worker; checks that read its files use the clean worker."""

    def __init__(self, student: Session, clean: Session) -> None:
        self.student, self.clean = student, clean

    def describe(self, build: Build, *, training: bool = False) -> Description:
        """Build the module and return its parameters, buffers and files."""
        tensors: list[torch.Tensor] = []
        request = DescribeModule(placed(build.args, build.kwargs, tensors), training)
        result, _ = self.student.call(request, tensors)
        return _description(result)

    def built(self, build: Build, state: Mapping[str, torch.Tensor], *, training: bool = False) -> "BuiltModule":
        """Return an object that calls the student's module with the weights in `state`, as if it were a function.

        Checks that are written for functions can use it too. The worker builds the module again for each call, in the
        precision of the state. If the state does not fit, the check that calls the module fails.
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
        by: Sequence[str] = (),
    ) -> Reply:
        """Call once, like `CallableAnswer`; gradients by the parameters named in `by` follow those of `wrt`."""
        call, tensors = placed_call(case, cotangents, wrt)
        arguments = len(tensors) - len(cotangents)
        others = {name: other_values(tensor) for name, tensor in self.state.items()}
        earlier, state = _numbered(others, tensors), _numbered(self.state, tensors)
        build = placed(self.build.args, self.build.kwargs, tensors)
        request = CallModule(build, self.training, earlier, state, tuple(by), call)
        result, mutated = self.student.call(request, tensors)
        reply = read_called(result.body, result.tensors, mutated, len(wrt) + len(by))
        return replace(reply, mutated=tuple(i for i in reply.mutated if i < arguments))


def _numbered(state: Mapping[str, torch.Tensor], tensors: list[torch.Tensor]) -> dict[str, int]:
    """Add a state to `tensors`; return the number of each of its names."""
    tensors += state.values()
    return {name: len(tensors) - len(state) + i for i, name in enumerate(state)}


def _description(result: Result[Described]) -> Description:
    groups = (result.body.parameters, result.body.buffers, result.body.files)
    if sum(map(len, groups)) != len(result.tensors) or any(len(set(names)) != len(names) for names in groups):
        raise MalformedAnswerError("The worker sent tensors that do not fit their names.")
    tensors = iter(result.tensors)
    parameters, buffers, files = groups
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


def read_events(clean: Session, files: Mapping[str, bytes]) -> Events:
    """Read every event file among `files`; raises `CheckFailedError` if there is none or reading fails."""
    found = {name: data for name, data in files.items() if "tfevents" in name}
    if not found:
        raise CheckFailedError(
            "There is no event file in the folder; open SummaryWriter(folder), and close it at the end."
        )
    if sum(map(len, found.values())) > MAX_EVENT_BYTES:
        raise CheckFailedError(f"The event files are larger than {MAX_EVENT_BYTES >> 20} MB; write less into them.")
    clean.reload(LoadEvents(), ())
    try:
        read = clean.call_with(ReadEvents(), [RawTensor.of_bytes(data or b"\0") for data in found.values()]).body
    except AnswerFailedError as error:
        raise CheckFailedError(f"TensorBoard cannot read the event files: {error.message}") from None
    scalars = {
        tag: tuple((step, math.nan if value is None else value) for step, value in points)
        for tag, points in read.scalars.items()
    }
    return Events(scalars, read.graph_operators, read.histograms)
