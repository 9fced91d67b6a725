"""Random graphs for questions about graphs, as steps of `analysis_programs.graph`, with compatible shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.host.draw import Draw
from autograder.host.kinds.analysis import Asked


@dataclass
class RandomGraph:
    """A graph that is built step by step; the name of a step does not tell its operator."""

    draw: Draw
    steps: list[Mapping[str, Any]] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)  # of the inputs

    def input(self, *shape: int) -> int:
        """Add an input of that shape and return the number of its step."""
        self.shapes.append(list(shape))
        return self._add({"name": f"in{len(self.shapes)}"})

    def call(self, name: str, *args: Any, **kwargs: Any) -> int:
        """Add a call and return the number of its step; an `At` argument refers to an earlier step."""
        given = [[key, _written(value)] for key, value in kwargs.items()]  # a list keeps its order
        letter = self.draw.choice("abcdefgh")
        step = {"call": name, "args": [_written(a) for a in args], "kwargs": given}
        return self._add({**step, "name": f"{letter}{len(self.steps)}"})

    def _add(self, step: Mapping[str, Any]) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def asked_whole(self, name: str) -> Asked:
        """Return the question about this graph, which returns its last step."""
        return self.asked(At(len(self.steps) - 1), name)

    def asked(self, returns: Any, name: str, device: str = "cpu") -> Asked:
        """Return the question about this graph, whose outputs are the steps in `returns`."""
        arguments = {"steps": self.steps, "returns": _written(returns), "shapes": self.shapes, "device": device}
        return Asked("graph", arguments, name)


@dataclass(frozen=True)
class At:
    """The result of a step, used as an argument of another step."""

    step: int


def _written(value: Any) -> Any:
    if isinstance(value, At):
        return {"step": value.step}
    return [_written(v) for v in value] if isinstance(value, list | tuple) else value


def pointwise_chain(graph: RandomGraph, value: int, length: int) -> int:
    """Add `length` pointwise steps after `value`, some with two operands of the same shape."""
    earlier = value
    for _ in range(length):
        if graph.draw.chance(0.4):
            value, earlier = graph.call(graph.draw.choice(("add", "mul")), At(value), At(earlier)), value
        else:
            value, earlier = graph.call(graph.draw.choice(("relu", "gelu", "neg")), At(value)), value
    return value


def mixed(draw: Draw, rows: int | None = None, *, views: bool = True) -> RandomGraph:
    """Return a graph of two matrix products with pointwise steps and a residual sum at the end, its result.

    The products are (m, k) · (k, n) and then (m, n) · (n, k), so the result has the shape (m, k) of the input.
    """
    graph = RandomGraph(draw)
    m, k, n = rows or draw.integer(2, 6), draw.integer(2, 6), draw.integer(2, 6)
    x, w = graph.input(m, k), graph.input(k, n)
    hidden = pointwise_chain(graph, graph.call("matmul", At(x), At(w)), draw.integer(1, 3))
    back = graph.call("transpose", At(w), 0, 1) if views else graph.input(n, k)
    result = pointwise_chain(graph, graph.call("matmul", At(hidden), At(back)), draw.integer(1, 3))
    graph.call("add", At(result), At(x))
    return graph
