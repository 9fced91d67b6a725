"""Hidden checks and controls of exercise 04.3."""

from __future__ import annotations

from autograder.exercises.fx_capture import shape_propagation as visible
from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.analysis import Asked, sees

shapes, BELIEFS = visible.shapes, visible.BELIEFS


def enormous(draw: Draw) -> list[Asked]:
    """Graphs on the meta device whose tensors would not fit into any memory."""
    graph = RandomGraph(draw)
    rows, width = draw.integer(1 << 20, 1 << 21), draw.integer(1 << 18, 1 << 19)
    x, w = graph.input(rows, width), graph.input(width, rows)
    product = graph.call("matmul", At(x), At(w))
    halves = graph.call("chunk", At(product), 2, dim=0)
    return [graph.asked([At(halves), At(product)], "tensors without data", device="meta")]


def odd(draw: Draw) -> list[Asked]:
    """One row, and none."""
    graphs = [mixed(draw, rows=1), _empty(draw)]
    return [g.asked(At(len(g.steps) - 1), "odd sizes") for g in graphs]


def _empty(draw: Draw) -> RandomGraph:
    graph = RandomGraph(draw)
    x = graph.input(0, draw.integer(2, 5))
    graph.call("cat", [At(graph.call("relu", At(x))), At(x)], dim=1)
    return graph


def precisions(draw: Draw) -> list[Asked]:
    """A graph that changes the dtype by a method."""
    graph = RandomGraph(draw)
    x = graph.input(draw.integer(2, 5), 3)
    total = graph.call("sum", At(x), [0, 1], keepdim=draw.chance(0.5))
    sizes = graph.call("size", At(x))
    best = graph.call("max", At(x), 0)
    index = graph.call("getitem", At(best), 1)
    return [graph.asked([[At(total), At(index)], At(sizes)], "nested results and whole numbers")]


REFERENCE = """
def propagate(module, *inputs):
    found = {}

    class Seeing(fx.Interpreter):
        def run_node(self, node):
            result = super().run_node(node)
            found[node.name] = describe(result)
            return result

    Seeing(module).run(*inputs)
    return found


def describe(value):
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    return value
"""
TENSORS_ONLY = REFERENCE.replace(
    "            found[node.name]", "            if isinstance(result, torch.Tensor): found[node.name]"
)
TUPLES_OF_TENSORS = REFERENCE.replace(
    "return [describe(item) for item in value]", "return [list(item.shape) for item in value]"
)
COMPUTES = REFERENCE.replace(".run(*inputs)", ".run(*(torch.zeros(i.shape) for i in inputs))")
ALWAYS_FLOAT = REFERENCE.replace('str(value.dtype).removeprefix("torch.")', '"float32"')

HIDDEN = HiddenPart(
    checks=(
        Check("no tensor is computed", "fake tensors", 2, sees(shapes, enormous, BELIEFS)),
        Check("one row, and no rows", "odd sizes", 1.2, sees(shapes, odd, BELIEFS)),
        Check("nested results and whole numbers", "other values", 1.6, sees(shapes, precisions, BELIEFS)),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control("tensors only", TENSORS_ONLY, 12, below=True),
        Control("tuples hold tensors", TUPLES_OF_TENSORS, 12, below=True),
        Control("computes with zeros", COMPUTES, 12, below=True),
        Control("one dtype", ALWAYS_FLOAT, 12, below=True),
    ),
)
