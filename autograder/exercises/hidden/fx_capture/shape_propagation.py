"""Hidden checks and controls of exercise 04.3."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from autograder.exercises.fx_capture import shape_propagation as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked, Belief, known_of, sees


def enormous(draw: Draw) -> list[Asked]:
    """Return graphs on the meta device whose tensors would be too large for any memory."""
    graph = RandomGraph(draw)
    rows, width = draw.integer(1 << 20, 1 << 21), draw.integer(1 << 18, 1 << 19)
    x, w = graph.input(rows, width), graph.input(width, rows)
    product = graph.call("matmul", At(x), At(w))
    halves = graph.call("chunk", At(product), 2, dim=0)
    return [graph.asked([At(halves), At(product)], "tensors without data", device="meta")]


def odd(draw: Draw) -> list[Asked]:
    """Return graphs whose inputs have one row, and no rows."""
    graphs = [mixed(draw, rows=1), _empty(draw)]
    return [g.asked_whole("odd sizes") for g in graphs]


def _empty(draw: Draw) -> RandomGraph:
    graph = RandomGraph(draw)
    x = graph.input(0, draw.integer(2, 5))
    graph.call("cat", [At(graph.call("relu", At(x))), At(x)], dim=1)
    return graph


def precisions(draw: Draw) -> list[Asked]:
    """Return a graph that changes the dtype with a method."""
    graph = RandomGraph(draw)
    x = graph.input(draw.integer(2, 5), 3)
    total = graph.call("sum", At(x), [0, 1], keepdim=draw.chance(0.5))
    sizes = graph.call("size", At(x))
    best = graph.call("max", At(x), 0)
    index = graph.call("getitem", At(best), 1)
    return [graph.asked([[At(total), At(index)], At(sizes)], "nested results and whole numbers")]


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


FORM_BELIEFS = tuple(
    _wrong(" ".join(says), prefix=visible.PREFIX in says, tensors_only=False, output=visible.NO_OUTPUT not in says)
    for says in ((visible.PREFIX,), (visible.NO_OUTPUT,), (visible.PREFIX, visible.NO_OUTPUT))
)
"""Mistakes that show in every graph."""


BELIEFS = (
    *(
        _wrong(visible.ONLY_TENSORS, prefix=prefix, tensors_only=True, output=output)
        for prefix in (False, True)
        for output in (True, False)
    ),
    *FORM_BELIEFS,
)


known = known_of(shapes, BELIEFS)
known_forms = known_of(shapes, FORM_BELIEFS)
MISTAKES = {belief.says for belief in BELIEFS}

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("no tensor is computed", "fake tensors", 2, sees(known, enormous, granted=MISTAKES)),
        Check("one row, and no rows", "odd sizes", 1.5, sees(known, odd, granted=MISTAKES)),
        Check("nested results and whole numbers", "other values", 1.5, sees(known, precisions, granted=MISTAKES)),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("what ShapeProp notes", 6.5),
        ANSWERS.edited(
            "tensors only",
            12,
            ("found[node.name] =", "if isinstance(result, torch.Tensor): found[node.name] ="),
            below=True,
        ),
        ANSWERS.edited("tuples hold tensors", 12, ("[describe(item) for", "[list(item.shape) for"), below=True),
        ANSWERS.edited(
            "computes with zeros", 12, (".run(*inputs)", ".run(*(torch.zeros(i.shape) for i in inputs))"), below=True
        ),
        ANSWERS.edited("one dtype", 12, ("str(value.dtype).removeprefix('torch.')", "'float32'"), below=True),
    ),
)
