"""Call an answer that schedules a model: the host's model in, and the graph of what was built out, as data.

The worker builds the model from the host's text, puts the host's weights in, and gives the answer a schedule of it.
What the answer did shows in the graph; nothing that it says about it is asked.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.captured import written
from autograder.worker.tensors import to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]


class NotScheduledError(Exception):
    """The model that was built is not in the form that the exercise asks for."""


def schedule_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls give ``{"graph", "paths"}``, tensors beside it, of what the schedule builds. They take

    ``{"text", "arguments", "state", "training"}``: the model's source, how its ``Encoder`` is made, the names of the
    tensors beside the message, and the mode it is traced in; ``{"scheduled_in_training"}``: the mode before that;
    ``{"question"}``: what the answer is called with after the schedule, and ``{"times"}``, how often;
    ``{"part"}``: the path of the part whose graph is meant, which the answer must have traced; empty for the model;
    ``{"leaves", "operator"}``: for answers that only find: the model is traced before they are called, with every bias
    separated and these classes kept whole, and what they found is fused onto this operator of `course_lib.kernels`.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        schedule = _scheduled(message)
        for _ in range(body["times"]):
            found = entry(schedule, *body["question"])
            if body["operator"]:
                _fuse(schedule, found, body["operator"])
        part = schedule.build().train(body["training"]).get_submodule(body["part"])
        if body["part"] and not isinstance(part, torch.fx.GraphModule):
            raise NotScheduledError(f"{body['part']} is a {type(part).__name__}: it was not traced.")
        return written(_graph_of(part, body["part"]))

    return answer


def _scheduled(message: Message) -> Any:
    from course_lib.schedule import create_schedule

    body = message.body
    module = types.ModuleType("model")
    exec(compile(body["text"], "<model>", "exec", dont_inherit=True), module.__dict__)
    model = module.Encoder(**body["arguments"])
    model.load_state_dict(dict(zip(body["state"], map(to_torch, message.tensors), strict=True)))
    schedule = create_schedule(model.train(body["scheduled_in_training"]))
    if not body["operator"]:
        return schedule
    for path, part in model.named_modules():
        if type(part) is torch.nn.Linear:
            schedule[path].decompose()
    present = {type(part).__name__ for part in model.modules()}
    return schedule.trace(leaf_modules=[name for name in body["leaves"] if name in present])


def _fuse(schedule: Any, found: Any, operator: str) -> None:
    """Put the operator where the answer found its pattern; the fusing itself is not the student's to write."""
    import course_lib.kernels
    from course_lib.schedule import Matches

    if not isinstance(found, Matches):
        raise NotScheduledError(f"The function returned a {type(found).__name__}; return what find gives.")
    if found:
        schedule.fuse(found, compiler=getattr(course_lib.kernels, operator))


def _graph_of(part: torch.nn.Module, path: str) -> torch.fx.GraphModule:
    """The operators of ``part``, down to the modules of torch.nn."""
    try:
        return torch.fx.symbolic_trace(part)
    except Exception as error:  # what is in a schedule is the student's
        raise NotScheduledError(
            f"The graph of {path or 'the model'} cannot be read: {type(error).__name__}: {error}. "
            'Fuse with compiler="eager" or with an operator of course_lib.kernels.'
        ) from None
