"""Call an answer that schedules a model: it takes a schedule, and the graph of the scheduled model is sent as data.

The worker builds the model from the host's text, loads the host's weights, and passes a schedule of it to the answer.
Only the graph is graded, and the answer reports nothing else.
"""

import types
from collections.abc import Callable, Iterator
from operator import getitem
from typing import Any

import torch

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import Schedule, WrittenGraph
from autograder.worker.kinds.graph import written
from autograder.worker.source import AnswerError
from autograder.worker.tensors import to_torch


class NotScheduledError(AnswerError):
    """The model that was built is not in the form that the exercise asks for."""


def schedule_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a schedule answer."""

    def build(request: Schedule, tensors: Tensors) -> Result[WrittenGraph]:
        schedule = _scheduled(request, tensors)
        for _ in range(request.times):
            found = entry(schedule, *request.question)
            if request.operator:
                _fuse(schedule, found, request.operator)
        part = schedule.build().train(request.training).get_submodule(request.part)
        if not request.part:
            return written(_graph_of(part))
        if not isinstance(part, torch.fx.GraphModule):
            raise NotScheduledError(f"{request.part} is a {type(part).__name__}: it was not traced.")
        for name in (node.target for node in part.graph.find_nodes(op="call_module")):
            if not (kind := type(part.get_submodule(name))).__module__.startswith("torch.nn."):
                told = f"{request.part} is no flat graph: {name}, a {kind.__name__}, is one node of it. "
                raise NotScheduledError(f"{told}What it is made of has to be changed first, then traced.")
        return written(part)

    return {Schedule: build}


def _scheduled(request: Schedule, tensors: Tensors) -> Any:
    from course_lib.schedule import create_schedule

    module = types.ModuleType("model")
    exec(compile(request.text, "<model>", "exec", dont_inherit=True), module.__dict__)
    model = module.Encoder(**request.arguments)
    model.load_state_dict(dict(zip(request.state, map(to_torch, tensors), strict=True)))
    schedule = create_schedule(model.train(request.scheduled_in_training))
    if not request.operator:
        return schedule
    for path, part in model.named_modules():
        if type(part) is torch.nn.Linear:
            schedule[path].decompose()
    present = {type(part).__name__ for part in model.modules()}
    return schedule.trace(leaf_modules=[name for name in request.leaves if name in present])


def _fuse(schedule: Any, found: Any, operator: str) -> None:
    """Replace the matches that the answer found by the operator; such an answer does not fuse them itself."""
    import course_lib.kernels
    from course_lib.schedule import Matches

    if not isinstance(found, Matches):
        raise NotScheduledError(f"The function returned a {type(found).__name__}; return what find gives.")
    if found:
        schedule.fuse(found, compiler=getattr(course_lib.kernels, operator))


def _graph_of(model: torch.nn.Module) -> torch.fx.GraphModule:
    """Return the operators of `model`, down to the modules of torch.nn."""
    tracer = _PartsTracer()
    try:
        return torch.fx.GraphModule(model, tracer.trace(model))
    except Exception as error:  # student code in the schedule may raise anything
        raise NotScheduledError(
            f"The graph of the model cannot be read: {type(error).__name__}: {error}. "
            "A part that you put in has to be traceable by torch.fx: no loop over a tensor, no branch on its values. "
            'What you fuse needs compiler="eager" or an operator of course_lib.kernels.'
        ) from None


class _PartsTracer(torch.fx.Tracer):
    """A tracer that lets the parts of a tensor be iterated where the program says how many there are."""

    def iter(self, obj: torch.fx.Proxy) -> Iterator[torch.fx.Proxy]:
        count = _number_of_parts(obj.node)
        if count is None:
            parts: Iterator[torch.fx.Proxy] = super().iter(obj)
            return parts
        return (getitem(obj, i) for i in range(count))


def _number_of_parts(node: torch.fx.Node) -> int | None:
    if node.target not in ("chunk", "split", torch.chunk, torch.split):
        return None
    names = ("chunks", "split_size_or_sections", "split_size")
    asked = node.args[1] if len(node.args) > 1 else next((node.kwargs[n] for n in names if n in node.kwargs), None)
    if node.target in ("chunk", torch.chunk):
        return asked if isinstance(asked, int) else None
    return len(asked) if isinstance(asked, list | tuple) else None
