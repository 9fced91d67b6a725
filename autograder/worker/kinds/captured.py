"""Capture an answer that is a function: its graph crosses, as data, and the function itself stays here.

Whether a capture is whole is decided by the host: a graph that is right for inputs which the function has never seen
holds everything that the function does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.callable import call_on_tensors, value_answer
from autograder.worker.kinds.collected_graphs import collected
from autograder.worker.plain_graphs import plain
from autograder.worker.source import NoEntryPointError
from autograder.worker.tensors import to_raw, to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

Reply = tuple[dict[str, Any], list[RawTensor]]


FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")


class NotOneGraphError(Exception):
    """Dynamo does not capture the function as one graph."""


def captured_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Every call names in ``member`` one of the functions in the dict that the entry point returns; empty for itself.

    ``{"do": "capture", "how", "dynamic"}`` with inputs gives ``{"graph", "paths"}``, tensors beside it; ``how`` is
    "dynamo" or "dispatch", and ``dynamic`` lists for each input the dimensions whose size is to stay open.
    ``{"do": "collect", "program", "name", "calls"}`` is described in `collected`. ``{"do": "ask"}`` and ``{"do":
    "call"}`` are the calls of answers that are values and functions on tensors.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        function = _member(entry, body["member"])
        if body["do"] == "ask":
            return value_answer(function)(message)
        if body["do"] == "call":
            return call_on_tensors(function, message)
        if body["do"] == "collect":
            return collected(function, message)
        inputs = [to_torch(raw) for raw in message.tensors]
        function(*[i.clone() for i in inputs])  # what raises does so in its own words
        capture = {"dynamo": _with_dynamo, "dispatch": _by_dispatch}[body["how"]]
        return written(plain(capture(function, inputs, body["dynamic"])))

    return answer


def written(graph_module: fx.GraphModule) -> Reply:
    """The graph as data and its tensors."""
    from course_lib.graph import to_data

    graph, kept = to_data(graph_module)
    return {"graph": graph, "paths": list(kept)}, [to_raw(t, path) for path, t in kept.items()]


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
    """The graph that Dynamo makes in one piece; `torch.export` gives it in ATen, with constants inside."""
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
    """Export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def _by_dispatch(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]]
) -> fx.GraphModule:
    """The operators that reach ATen when the function runs once, writes and views included."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode="symbolic" if any(dynamic) else "real")(*inputs)


def _first(error: Exception) -> str:
    """What Dynamo says first, and the line it is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith('File "<answer')), None)
    where = f" At `{lines[at + 1]}`." if at is not None and at + 1 < len(lines) else ""
    return f"{lines[0].rstrip('.')}.{where}" if lines else type(error).__name__
