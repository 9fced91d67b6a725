"""Hidden checks and controls of exercise 04.3."""

from autograder.exercises.fx_capture.shape_propagation import BELIEFS, shapes
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked, sees


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


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("no tensor is computed", "fake tensors", 2, sees(shapes, enormous, granted=BELIEFS)),
        Check("one row, and no rows", "odd sizes", 1.4, sees(shapes, odd, granted=BELIEFS)),
        Check("nested results and whole numbers", "other values", 1.6, sees(shapes, precisions, granted=BELIEFS)),
    ),
    controls=(
        ANSWERS.reference(12),
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
