"""Counterexamples, on both sides: pack the inputs that a student's function returns, and run programs on them.

The inputs are sent as plain data with tensors and graphs beside it. Programs of the host run on them in a worker that
never saw the student's code.

For the JSON of a value see `PackedValue`.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Handlers, Json, RawTensor, Result, Tensors
from autograder.protocol.requests.answers import FindInputs, PackedGraph, PackedValue
from autograder.protocol.requests.loads import LoadTrial, RunTrial
from autograder.worker import source
from autograder.worker.clean_worker import rebuilt
from autograder.worker.kinds.analysis import host_programs
from autograder.worker.tensors import to_raw, to_torch

MAX_DEPTH = 20


class NotAnInputError(TypeError):
    """A counterexample holds a value that cannot be sent to the host."""


def counterexample_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a counterexample answer."""

    def find(request: FindInputs, _: Tensors) -> Result[PackedValue]:
        make = getattr(host_programs(request.text), request.make) if request.make else lambda question: (question,)
        found = entry(*make(request.question))
        return packed(tuple(found) if isinstance(found, list) else found)  # both are the inputs, in order

    return {FindInputs: find}


def load_trial(request: LoadTrial, _: Tensors) -> Handlers:
    """Run the host's text; requests call one of its functions on inputs that a student chose."""
    programs = vars(source.run({"program": request.text}))

    def run(request: RunTrial, tensors: Tensors) -> Result[PackedValue]:
        own = [to_torch(raw).clone() for raw in tensors]
        if request.double:
            own = [t.double() if t.is_floating_point() else t for t in own]
        inputs = _unpacked(request.inputs.value, own, request.inputs.graphs)
        torch.manual_seed(request.seed)
        return packed(programs[request.program](*(inputs if isinstance(inputs, tuple) else (inputs,))))

    return {RunTrial: run}


def packed(value: object) -> Result[PackedValue]:
    """Return a value in the form in which it is sent."""
    packer = _Packer()
    json = packer.pack(value, "the result")
    return Result(PackedValue(json, tuple(packer.graphs)), packer.tensors)


class _Packer:
    """Write values as JSON, and keep the tensors and graphs that they hold."""

    def __init__(self) -> None:
        self.tensors: list[RawTensor] = []
        self.graphs: list[PackedGraph] = []

    def pack(self, value: object, where: str, depth: int = 0) -> Json:
        """Return the JSON of `value`; raises `NotAnInputError`, naming `where`, for a value that cannot be sent."""
        if depth > MAX_DEPTH:
            raise NotAnInputError(f"{where} is nested deeper than {MAX_DEPTH} levels.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.pack(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": [self.pack(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.pack(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}}
        if isinstance(value, torch.Tensor):
            return {"tensor": self._keep(value, where)}
        if isinstance(value, torch.nn.Module) or callable(value):
            return {"graph": self._trace(value, where)}
        raise NotAnInputError(
            f"{where} is a {type(value).__name__}; return tensors, plain data, functions that torch.fx can trace, "
            "and tuples, lists and dicts (with str keys) of them."
        )

    def _keep(self, tensor: torch.Tensor, where: str) -> int:
        self.tensors.append(to_raw(tensor, where))
        return len(self.tensors) - 1

    def _trace(self, program: Any, where: str) -> int:
        from course_lib.graph import to_data

        traced = program if isinstance(program, torch.fx.GraphModule) else _traced(program, where)
        data, tensors = to_data(traced)
        numbers = {path: self._keep(tensor, f"{where}, {path}") for path, tensor in tensors.items()}
        self.graphs.append(PackedGraph(data, numbers))
        return len(self.graphs) - 1


def _traced(program: Any, where: str) -> torch.fx.GraphModule:
    try:
        return torch.fx.symbolic_trace(program)
    except Exception as error:  # a student's program may raise anything when it is traced
        raise NotAnInputError(f"{where} cannot be traced by torch.fx: {type(error).__name__}: {error}") from None


def _unpacked(value: Json, tensors: list[torch.Tensor], graphs: tuple[PackedGraph, ...]) -> Any:
    """Return the value that JSON stands for; the host has checked it."""
    if isinstance(value, list):
        return [_unpacked(item, tensors, graphs) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "tensor":
        return tensors[content]
    if tag == "graph":
        packed_graph = graphs[content]
        return rebuilt(packed_graph.graph, {path: tensors[i] for path, i in packed_graph.tensors.items()})
    if tag == "float":
        return float(content)
    if tag == "tuple":
        return tuple(_unpacked(item, tensors, graphs) for item in content)
    return {key: _unpacked(item, tensors, graphs) for key, item in content.items()}
