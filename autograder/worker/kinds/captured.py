"""Capture an answer that is a function: its graph crosses, as data, and the function itself stays here.

Whether a capture is whole is decided by the host: a graph that is right for inputs which the function has never seen
holds everything that the function does.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from autograder.protocol import Result
from autograder.protocol.requests.answers import (
    AskMember,
    Called,
    CallMember,
    Capture,
    Collect,
    CollectedGraphs,
    Value,
    WrittenGraph,
)
from autograder.worker.failures import AnswerError
from autograder.worker.handlers import Handlers, Tensors
from autograder.worker.kinds.collected_graphs import collected
from autograder.worker.kinds.graph import written
from autograder.worker.kinds.value import plain_data
from autograder.worker.plain_graphs import plain
from autograder.worker.source import NoEntryPointError
from autograder.worker.tensor_calls import call_on_tensors
from autograder.worker.tensors import to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")


class NotOneGraphError(AnswerError):
    """Dynamo does not capture the function as one graph."""


def captured_answer(entry: Callable[..., Any]) -> Handlers:
    """Return what an answer of this kind serves."""

    def capture(request: Capture, tensors: Tensors) -> Result[WrittenGraph]:
        function = _member(entry, request.member)
        inputs = [to_torch(raw) for raw in tensors]
        function(*[i.clone() for i in inputs])  # what raises does so in its own words
        capture_graph = {"dynamo": _with_dynamo, "dispatch": _by_dispatch}[request.how]
        return written(plain(capture_graph(function, inputs, request.dynamic)))

    def ask(request: AskMember, _: Tensors) -> Result[Value]:
        return Result(Value(plain_data(_member(entry, request.member)(request.question), "the result")))

    def call(request: CallMember, tensors: Tensors) -> Result[Called]:
        return call_on_tensors(_member(entry, request.member), request.call, tensors)

    def collect(request: Collect, tensors: Tensors) -> Result[CollectedGraphs]:
        return collected(_member(entry, request.member), request, tensors)

    return {Capture: capture, AskMember: ask, CallMember: call, Collect: collect}


def _member(entry: Callable[..., Any], name: str) -> Callable[..., Any]:
    if not name:
        return entry
    functions = entry()
    if not isinstance(functions, dict):
        raise NoEntryPointError(
            f"The answer returned a {type(functions).__name__}; return a dict from each name to its function."
        )
    if not callable(functions.get(name)):
        raise NoEntryPointError(f"The dict that the answer returned has no function {name!r}.")
    return functions[name]


def _with_dynamo(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]]
) -> fx.GraphModule:
    """Return the graph that Dynamo makes in one piece; `torch.export` gives it in ATen, with constants inside."""
    from torch._dynamo.exc import TorchDynamoException
    from torch.export import Dim, export

    leave_guards_untimed()
    shapes = tuple(dict.fromkeys(dims, Dim.DYNAMIC) or None for dims in dynamic) or None
    torch._dynamo.reset()
    try:
        # fullgraph refuses what export passes over, such as a print
        torch.compile(function, fullgraph=True, backend="eager")(*[i.clone() for i in inputs])
        exported = export(_Program(function), tuple(inputs), strict=True, dynamic_shapes=shapes and (shapes,))
    except TorchDynamoException as error:
        fixed = FIXED.search(str(error))
        if fixed:
            raise NotOneGraphError(
                f"The function fixes a size that should stay open to {fixed[1]}: it branches on it, loops over it, or "
                "makes a Python number of it that the graph keeps."
            ) from None
        raise NotOneGraphError(f"Dynamo cannot capture the function as one graph: {_first(error)}") from None
    return exported.module(check_guards=False)


class _Program(torch.nn.Module):
    """The function as a module, since export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def _by_dispatch(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]]
) -> fx.GraphModule:
    """Return the operators that reach ATen when the function runs once, writes and views included."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode="symbolic" if any(dynamic) else "real")(*inputs)


def _first(error: Exception) -> str:
    """Return what Dynamo says first, and the line it is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith('File "<answer')), None)
    where = f" At `{lines[at + 1]}`." if at is not None and at + 1 < len(lines) else ""
    return f"{lines[0].rstrip('.')}.{where}" if lines else type(error).__name__
