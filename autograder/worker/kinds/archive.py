"""TorchScript archives, on both sides: script and save what a student wrote, and run a checked archive elsewhere.

A student's function or module is compiled by torch.jit.script in the student's worker and crosses as the bytes of an
archive. The host checks them; a worker that never saw the student's code loads and runs them.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.callable import filled
from autograder.worker.source import MODULE_NAME
from autograder.worker.tensors import to_raw, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]
PROFILING_RUNS = 3
"""Runs after which the executor has profiled, specialised and fused."""


class NotScriptableError(TypeError):
    """What the answer defines is nothing that torch.jit.script takes."""


def archive_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls give the bytes of an archive, as one tensor.

    Body: either ``function``, the name of a function in the answer's cell, or ``build``, the arguments with which the
    entry point makes a module, and ``state``, from the names of its state to the numbers of their tensors.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript is deprecated is the notebook's subject
            if "function" in body:
                program = _function(body["function"])
            else:
                state = {name: to_torch(message.tensors[i]) for name, i in body["state"].items()}
                program = _module(entry, body["build"], state)
            buffer = io.BytesIO()
            torch.jit.save(_scripted(program), buffer)
        data = buffer.getvalue()
        return {}, [RawTensor("uint8", (len(data),), (1,), data)]

    return answer


def _function(name: str) -> Any:
    found = vars(sys.modules[MODULE_NAME]).get(name)
    if not callable(found):
        raise NotScriptableError(f"The answer's cell defines no function `{name}`. Keep that name.")
    return found


def _module(entry: Callable[..., Any], build: list[Any], state: dict[str, torch.Tensor]) -> Any:
    module = entry(*build)
    if not isinstance(module, torch.nn.Module):
        raise NotScriptableError(f"The answer made a {type(module).__name__}; expected an nn.Module.")
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise NotScriptableError(f"The module cannot take the weights it should have. {error}") from None
    return module.eval()


def _scripted(program: Any) -> Any:
    if isinstance(program, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        return program
    try:
        return torch.jit.script(program)
    except Exception as error:  # the compiler raises many types, some of them private
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise NotScriptableError(f"torch.jit.script refuses it: {' '.join(lines)[:600]}") from None


def load(message: Message) -> Callable[[Message], Reply]:
    """Run the archive of a LOAD message, which the host has checked; each call loads it anew.

    Body of a call: ``calls``, a list of ``{"args": [...], "kwargs": {...}}`` made one after the other, in which
    ``{"tensor": i}`` stands for tensor number ``i``; with ``describe`` they are made until the executor has fused, and
    the reply holds the optimised graph as data. Body of a reply: ``outputs``, their number in each call, and ``graph``.
    """
    data = bytes(message.tensors[0].data)

    def answer(call: Message) -> Reply:
        inputs = [to_torch(raw) for raw in call.tensors]
        calls = [
            ([filled(a, inputs) for a in one["args"]], {k: filled(a, inputs) for k, a in one["kwargs"].items()})
            for one in call.body["calls"]
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.jit.load(io.BytesIO(data))
            if call.body["describe"]:
                return {"outputs": [], "graph": _optimised(program, calls)}, []
            results = [program(*args, **kwargs) for args, kwargs in calls]
        several = [list(r) if isinstance(r, tuple | list) else [r] for r in results]
        raws = [to_raw(output, "an output") for outputs in several for output in outputs]
        return {"outputs": [len(outputs) for outputs in several]}, raws

    return answer


def _optimised(program: Any, calls: list[tuple[list[Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    from course_lib.capture.script_graphs import fusing_with

    with fusing_with("tensor_expressions"):
        for args, kwargs in calls:
            for _ in range(PROFILING_RUNS):
                program(*args, **kwargs)
        graph = program.graph_for(*calls[-1][0], **calls[-1][1])
    return _nodes(graph)


def _nodes(block: Any) -> list[dict[str, Any]]:
    """Nodes as data: their kind, the nodes of their blocks, and those of the graph that they hold."""
    return [
        {
            "kind": node.kind(),
            "blocks": [_nodes(inner) for inner in node.blocks()],
            "subgraph": _nodes(node.g("Subgraph")) if "Subgraph" in node.attributeNames() else [],
        }
        for node in block.nodes()
    ]
