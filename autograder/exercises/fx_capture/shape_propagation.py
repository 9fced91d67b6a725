"""Exercise 04.3: find the shape and dtype of every node's result with an Interpreter."""

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, sees

known = kept(__name__, "known")
known_forms = kept(__name__, "known_forms")

PREFIX = "dtype begins with 'torch.'; the text asked for is 'float32', without it."
ONLY_TENSORS = "only tensors were described; a node may also give a tuple, a number or None."
NO_OUTPUT = "the output node is missing; it gives something, too."


FORMS = (PREFIX, NO_OUTPUT, f"{PREFIX} {NO_OUTPUT}")
"""Sentences about mistakes that show in every graph."""


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
    masked=("course_lib.graph", "torch.fx.passes.fake_tensor_prop"),
    ready_made=("torch.fx.passes.shape_prop",),
    hints=(
        "fx.Interpreter(module).run(*inputs) runs a graph node by node; its method run_node(node) gives one result.",
        "Subclass it: call super().run_node(node), write down a description under node.name, return the result.",
        "Write the description as a function that calls itself for the items of a tuple or a list.",
    ),
    checks=(
        Check("every node gives one tensor", "tensors", 3, sees(known_forms, plain)),
        Check("tuples, numbers and None", "other values", 4, sees(known, several, granted=FORMS)),
    ),
)
