"""Counterexamples, on both sides: pack what a student's function returns, and run programs of the host's on it.

A student's function gives inputs. They cross as plain data with tensors and graphs beside it, and programs that the
host wrote run on them in a worker that never saw the student's code.

    the JSON of a value    None, bool, int, float and str stand for themselves, lists for lists; everything else is an
                           object with one key: {"tuple": [...]}, {"dict": {...}}, {"float": "nan"},
                           {"tensor": number}, {"graph": number}
    a graph                {"graph": data of `course_lib.graph.to_data`, "tensors": {path: number}}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.course_operators import register_for
from autograder.worker.tensors import to_raw, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]
MAX_DEPTH = 20


class NotAnInputError(TypeError):
    """A counterexample holds something that cannot be carried to the host."""


def counterexample_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls take ``{"question": JSON}`` and give ``{"inputs": JSON, "graphs": [...]}`` and tensors."""

    def answer(message: Message) -> Reply:
        packer = Packer()
        inputs = packer.pack(entry(message.body["question"]), "the result")
        return {"inputs": inputs, "graphs": packer.graphs}, packer.tensors

    return answer


def trial(programs: Callable[[str], Callable[..., Any]]) -> Callable[[Message], Reply]:
    """Run one program of the host's on inputs that a student chose.

    Calls take ``{"program", "seed", "double", "inputs", "graphs"}`` and tensors: ``programs(program)`` is called with
    the inputs, one by one if they are a tuple, floating-point tensors in double precision if asked for. They give
    ``{"result": JSON, "graphs": []}`` and tensors.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        tensors = [to_torch(raw).clone() for raw in message.tensors]
        if body["double"]:
            tensors = [t.double() if t.is_floating_point() else t for t in tensors]
        inputs = _unpacked(body["inputs"], tensors, body["graphs"])
        torch.manual_seed(body["seed"])
        result = programs(body["program"])(*(inputs if isinstance(inputs, tuple) else (inputs,)))
        packer = Packer()
        return {"result": packer.pack(result, "the result"), "graphs": packer.graphs}, packer.tensors

    return answer


class Packer:
    """Writes values as JSON, and keeps the tensors and graphs that it meets."""

    def __init__(self) -> None:
        self.tensors: list[RawTensor] = []
        self.graphs: list[dict[str, Any]] = []

    def pack(self, value: object, where: str, depth: int = 0) -> Any:
        """The JSON of ``value``; raises `NotAnInputError`, naming ``where``, for what cannot cross."""
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
        self.graphs.append({"graph": data, "tensors": numbers})
        return len(self.graphs) - 1


def _traced(program: Any, where: str) -> torch.fx.GraphModule:
    try:
        return torch.fx.symbolic_trace(program)
    except Exception as error:  # whatever a program of the student's does with proxies
        raise NotAnInputError(f"{where} cannot be traced by torch.fx: {type(error).__name__}: {error}") from None


def _unpacked(value: Any, tensors: list[torch.Tensor], graphs: list[dict[str, Any]]) -> Any:
    """The value that JSON stands for; the host has checked it."""
    if isinstance(value, list):
        return [_unpacked(item, tensors, graphs) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "tensor":
        return tensors[content]
    if tag == "graph":
        return _rebuilt(graphs[content], tensors)
    if tag == "float":
        return float(content)
    if tag == "tuple":
        return tuple(_unpacked(item, tensors, graphs) for item in content)
    return {key: _unpacked(item, tensors, graphs) for key, item in content.items()}


def _rebuilt(entry: dict[str, Any], tensors: list[torch.Tensor]) -> torch.fx.GraphModule:
    register_for(entry["graph"])
    from course_lib.graph import from_data

    return from_data(entry["graph"], {path: tensors[number] for path, number in entry["tensors"].items()})
