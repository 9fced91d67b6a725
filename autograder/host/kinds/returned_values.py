"""Read the values that a function returned in a worker: tensors, plain data, and programs that torch.fx can trace.

They come as data. Each is read against limits of number, depth and size, and nothing of it is called here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from autograder.host import shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import read_graph
from autograder.protocol import Json, RawTensor, Result
from autograder.protocol.requests.answers import PackedGraph, PackedValue, WrittenGraph
from course_lib.graph import from_data

MAX_VALUES = 2000
MAX_DEPTH = 20
MAX_TEXT = 1000
MAX_NODES = 100
MAX_GRAPHS = 8


@dataclass(frozen=True)
class Values:
    """The values that a function returned in a worker, in two forms: as in the message, and as Python objects."""

    packed: PackedValue  # for sending it to another worker
    tensors: tuple[torch.Tensor, ...]
    value: Any  # programs in it are graph modules, which must not be called in the host

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return the items if the value is a tuple, else a tuple of the value."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def graphs(self) -> list[fx.GraphModule]:
        """Return the programs among the values."""
        return [leaf for leaf in leaves(self).values() if isinstance(leaf, fx.GraphModule)]


def read_values(reply: Result[PackedValue]) -> Values:
    """Read the values in a worker's reply.

    Raises `MalformedAnswerError` for a reply that no worker sends, and `CheckFailedError` for a graph with contents
    that are not allowed.
    """
    packed = reply.body
    tensors = tuple(map(shared_inputs.to_torch, reply.tensors))
    if len(packed.graphs) > MAX_GRAPHS:
        raise MalformedAnswerError
    rebuilt = [_graph(entry, reply.tensors) for entry in packed.graphs]
    reader = _Reader(tensors, rebuilt)
    return Values(packed, tensors, reader.read(packed.value))


def _graph(entry: PackedGraph, raws: Sequence[RawTensor]) -> fx.GraphModule:
    if not all(number < len(raws) for number in entry.tensors.values()):
        raise MalformedAnswerError
    written = WrittenGraph(entry.graph, tuple(entry.tensors))
    reply = Result(written, [raws[number] for number in entry.tensors.values()])
    artifact = read_graph(reply, "The program that was returned is refused: ", max_nodes=MAX_NODES)
    return from_data(artifact.graph, artifact.tensors)


class _Reader:
    """Read one value, counting its parts against one limit."""

    def __init__(self, tensors: Sequence[torch.Tensor], graphs: Sequence[fx.GraphModule]) -> None:
        self._places = {"tensor": tensors, "graph": graphs}
        self._count = 0

    def read(self, data: Json, depth: int = 0) -> Any:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise CheckFailedError(
                f"The answer has more than {MAX_VALUES} parts, or is nested deeper than {MAX_DEPTH}."
            )
        if data is None or type(data) in (bool, int, float):
            return data
        if type(data) is str:
            if len(data) > MAX_TEXT:
                raise CheckFailedError(f"The answer holds a text of {len(data):,} characters; {MAX_TEXT:,} are enough.")
            return data
        if type(data) is list:
            return [self.read(item, depth + 1) for item in data]
        if type(data) is not dict or len(data) != 1:
            raise MalformedAnswerError
        ((tag, content),) = data.items()
        return self._tagged(tag, content, depth)

    def _tagged(self, tag: str, content: Json, depth: int) -> Any:
        if tag in self._places and type(content) is int and 0 <= content < len(self._places[tag]):
            return self._places[tag][content]
        if tag == "tuple" and type(content) is list:
            return tuple(self.read(item, depth + 1) for item in content)
        if tag == "dict" and type(content) is dict:
            return {key: self.read(item, depth + 1) for key, item in content.items()}
        if tag == "float" and content in ("nan", "inf", "-inf"):
            return float(content)
        raise MalformedAnswerError


def leaves(values: Values) -> Mapping[str, Any]:
    """Return a mapping from positions, such as `the result[0]`, to tensors, graphs and plain values."""
    return dict(_leaves(values.value, "the result"))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _leaves(item, f"{place}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}[{key!r}]")
    else:
        yield place, value


def require_bounded(inputs: Values, *, graphs: int, max_elements: int, max_number: float) -> None:
    """Raise `CheckFailedError` for inputs that are too many, too large or not finite, and for too many programs."""
    plain = [leaf for leaf in leaves(inputs).values() if not isinstance(leaf, torch.Tensor)]
    if len(inputs.graphs) > graphs:
        asked = f"{graphs} are asked for" if graphs else "none is asked for"
        raise CheckFailedError(f"The answer holds {len(inputs.graphs)} programs where {asked}.")
    elements = sum(t.numel() for t in inputs.tensors)
    if elements > max_elements:
        raise CheckFailedError(
            f"The answer has {elements:,} elements of tensors; at most {max_elements:,} may be used."
        )
    for value in (*inputs.tensors, *plain):  # tensors include the parameters of programs
        numbers = value if isinstance(value, torch.Tensor) else torch.tensor(_number(value), dtype=torch.float64)
        if not bool(torch.isfinite(numbers).all()):
            raise CheckFailedError("The answer holds NaN or infinity; find an input of ordinary numbers.")
        if numbers.numel() and float(numbers.double().abs().max()) > max_number:
            raise CheckFailedError(f"The answer holds a number larger than {max_number:g}; smaller ones are enough.")


def _number(value: Any) -> float:
    if type(value) is int:
        return math.inf if abs(value) > 1e300 else float(value)
    return value if type(value) is float else 0.0
