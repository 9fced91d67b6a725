"""Exercise 04.3: find the shape and dtype of every node's result with an Interpreter."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, Belief, sees


def described(value: Any) -> Any:
    """Return a tensor as its shape and dtype, tuples and lists item by item, everything else as it is."""
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    return [described(v) for v in value] if isinstance(value, tuple | list) else value


def shapes(module: fx.GraphModule, *inputs: torch.Tensor) -> Mapping[str, Any]:
    """Return the description of each node's result, by the node's name."""
    return _seen(module, inputs, described)


def _seen(
    module: fx.GraphModule, inputs: tuple[torch.Tensor, ...], describe: Callable[[Any], Any]
) -> Mapping[str, Any]:
    found: dict[str, Any] = {}

    class Seeing(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            result = super().run_node(n)
            found[n.name] = describe(result)
            return result

    Seeing(module).run(*inputs)
    return found


def _wrong(says: str, *, prefix: bool, tensors_only: bool, output: bool) -> Belief:
    def sees_(module: fx.GraphModule, *inputs: torch.Tensor) -> Mapping[str, Any]:
        seen = _seen(module, inputs, lambda v: v if tensors_only and not isinstance(v, torch.Tensor) else described(v))
        kept = {n: v for n, v in seen.items() if (output or n != "output") and (not tensors_only or type(v) is dict)}
        return _with_prefix(kept) if prefix else kept

    return Belief(sees_, says)


def _with_prefix(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: f"torch.{v}" if k == "dtype" and isinstance(v, str) else _with_prefix(v) for k, v in value.items()}
    return [_with_prefix(v) for v in value] if isinstance(value, list) else value


PREFIX = "dtype begins with 'torch.'; the text asked for is 'float32', without it."
ONLY_TENSORS = "only tensors were described; a node may also give a tuple, a number or None."
NO_OUTPUT = "the output node is missing; it gives something, too."
FORMS = tuple(
    _wrong(" ".join(says), prefix=PREFIX in says, tensors_only=False, output=NO_OUTPUT not in says)
    for says in ((PREFIX,), (NO_OUTPUT,), (PREFIX, NO_OUTPUT))
)
"""Mistakes that show in every graph."""
BELIEFS = (
    *(
        _wrong(ONLY_TENSORS, prefix=prefix, tensors_only=True, output=output)
        for prefix in (False, True)
        for output in (True, False)
    ),
    *FORMS,
)


def plain(draw: Draw) -> list[Asked]:
    """Return two graphs in which the result of every node is one tensor."""
    return [mixed(draw).asked_whole("a graph of tensors") for _ in range(2)]


def several(draw: Draw) -> list[Asked]:
    """Return a graph with a tuple and its items, a size and a number computed from it, and a node with result None."""
    graph = RandomGraph(draw)
    x = graph.input(draw.integer(2, 5), 2 * draw.integer(1, 4))
    graph.call("assert", True, "always true")
    parts = graph.call("chunk", At(x), 2, dim=1)
    first, second = graph.call("getitem", At(parts), 0), graph.call("getitem", At(parts), 1)
    rows = graph.call("size", At(x), 0)
    best = graph.call("max", At(first), 1)
    number = graph.call("float", At(rows))
    total = graph.call("mul", At(graph.call("cat", [At(first), At(second)], dim=0)), At(number))
    return [graph.asked([At(total), At(best), At(rows)], "a graph with tuples, numbers and None")]


EXERCISE = Exercise(
    title="Propagate shapes",
    kind=Kind.ANALYSIS,
    entry_point="propagate",
    points=12,
    wall_s=30,
    masked=("course_lib.graph",),
    hints=(
        "fx.Interpreter(module).run(*inputs) runs a graph node by node; its method run_node(node) gives one result.",
        "Subclass it: call super().run_node(node), write down a description under node.name, return the result.",
        "Write the description as a function that calls itself for the items of a tuple or a list.",
    ),
    checks=(
        Check("every node gives one tensor", "tensors", 3.8, sees(shapes, plain, FORMS)),
        Check("tuples, numbers and None", "other values", 3.2, sees(shapes, several, BELIEFS, granted=FORMS)),
    ),
)
