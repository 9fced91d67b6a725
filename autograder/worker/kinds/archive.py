"""TorchScript archives, on both sides: script and save a student's program, and run a checked archive elsewhere.

A student's function or module is compiled by torch.jit.script in the student's worker and sent as the bytes of an
archive. The host checks them; a worker that never saw the student's code loads and runs them.
"""

import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.protocol import Done, Handlers, RawTensor, Result, Tensors
from autograder.protocol.requests.answers import ScriptFunction, ScriptModule
from autograder.protocol.requests.loads import (
    ArchiveGraph,
    ArchiveNode,
    ArchiveRun,
    DescribeArchive,
    LoadArchive,
    RunArchive,
)
from autograder.worker.kinds.module import load_state, required_module
from autograder.worker.source import MODULE_NAME, AnswerError
from autograder.worker.tensors import filled, to_raw, to_torch

PROFILING_RUNS = 3
"""Runs after which the executor has profiled, specialised and fused."""


class NotScriptableError(AnswerError):
    """torch.jit.script cannot compile the object that the answer defines."""


def archive_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for an archive answer."""

    def function(request: ScriptFunction, _: Tensors) -> Result[Done]:
        return _archive(lambda: _function(request.function))

    def module(request: ScriptModule, tensors: Tensors) -> Result[Done]:
        def made() -> Any:
            module = required_module(entry(*request.build))
            load_state(module, {name: to_torch(tensors[i]) for name, i in request.state.items()})
            return module.eval()

        return _archive(made)

    return {ScriptFunction: function, ScriptModule: module}


def _archive(made: Callable[[], Any]) -> Result[Done]:
    """Return the bytes of a program's archive."""
    with warnings.catch_warnings(action="ignore"):  # the notebook explains that TorchScript is deprecated
        buffer = io.BytesIO()
        torch.jit.save(_scripted(made()), buffer)
    return Result(Done(), [RawTensor.of_bytes(buffer.getvalue())])


def _function(name: str) -> Any:
    found = vars(sys.modules[MODULE_NAME]).get(name)
    if not callable(found):
        raise NotScriptableError(f"The answer's cell defines no function `{name}`. Keep that name.")
    return found


def _scripted(program: Any) -> Any:
    if isinstance(program, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        return program
    try:
        return torch.jit.script(program)
    except Exception as error:  # the compiler raises many types, some of them private
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise NotScriptableError(f"torch.jit.script refuses it: {' '.join(lines)[:600]}") from None


def load_archive(_: LoadArchive, tensors: Tensors) -> Handlers:
    """Keep the bytes of an archive that the host has checked; each request loads them again."""
    data = bytes(tensors[0].data)

    def run(request: RunArchive, tensors: Tensors) -> Result[ArchiveRun]:
        inputs = [to_torch(raw) for raw in tensors]
        calls = [filled(call, inputs) for call in request.calls]
        with warnings.catch_warnings(action="ignore"):
            program = torch.jit.load(io.BytesIO(data))
            results = [program(*args, **kwargs) for args, kwargs in calls]
        several = [list(r) if isinstance(r, tuple | list) else [r] for r in results]
        raws = [to_raw(output, "an output") for outputs in several for output in outputs]
        return Result(ArchiveRun(tuple(len(outputs) for outputs in several)), raws)

    def describe(request: DescribeArchive, tensors: Tensors) -> Result[ArchiveGraph]:
        inputs = [to_torch(raw) for raw in tensors]
        with warnings.catch_warnings(action="ignore"):
            program = torch.jit.load(io.BytesIO(data))
            return Result(ArchiveGraph(_optimised(program, [filled(call, inputs) for call in request.calls])))

    return {RunArchive: run, DescribeArchive: describe}


def _optimised(program: Any, calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> tuple[ArchiveNode, ...]:
    from course_lib.capture.script_graphs import fusing_with

    with fusing_with("tensor_expressions"):
        for args, kwargs in calls:
            for _ in range(PROFILING_RUNS):
                program(*args, **kwargs)
        graph = program.graph_for(*calls[-1][0], **calls[-1][1])
    return _nodes(graph)


def _nodes(block: Any) -> tuple[ArchiveNode, ...]:
    return tuple(
        ArchiveNode(
            node.kind(),
            tuple(_nodes(inner) for inner in node.blocks()),
            _nodes(node.g("Subgraph")) if "Subgraph" in node.attributeNames() else (),
            any("Tensor" in str(output.type()) for output in node.outputs()),
            any("Tensor" in str(i.type()) and i.node().kind() != "prim::NumToTensor" for i in node.inputs()),
        )
        for node in block.nodes()
    )
