"""Exercise 04.5: write a graph as text that does not depend on the names of nodes."""

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed, pointwise_chain
from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, sees

known = kept(__name__, "known")
FROM_ONE = "the nodes are numbered from 1; the first one is %0."
"""A slip that costs the first check only."""
ROUND_LISTS = "lists stand in round brackets; those are for tuples, and lists have square ones."
"""A slip that costs the visible check of keywords only."""


def simple(draw: Draw) -> list[Asked]:
    """Return graphs whose calls have only nodes as arguments, or nodes followed by numbers."""
    return [mixed(draw).asked_whole("a small graph").alone() for _ in range(2)]


def keywords(draw: Draw) -> list[Asked]:
    """Return graphs of calls with keyword arguments in both orders, one of which is a list, and a method call."""
    asked = []
    for order in (("dim", "keepdim"), ("keepdim", "dim")):
        graph = RandomGraph(draw)
        x = pointwise_chain(graph, graph.input(3, 3), draw.integer(2, 4))
        values = {"dim": [draw.integer(0, 1)], "keepdim": draw.chance(0.5)}
        given = {name: values[name] for name in order}
        total = graph.call("sum", At(x), **given)
        rows = graph.call("size", At(x), draw.integer(0, 1))
        asked.append(graph.asked([At(total), At(rows)], "keywords and a method").alone())
    return asked


EXERCISE = Exercise(
    title="Write a graph as text",
    kind=Kind.ANALYSIS,
    entry_point="render",
    points=5,
    wall_s=30,
    masked=("course_lib.graph",),
    hints=(
        "Make a dict from each node to its label first: a node's arguments may then be written by looking up labels.",
        "Write the arguments by a function that calls itself for tuples and lists, and uses repr for all the rest.",
        "The name of what is called is node.target.__name__ for a function and '.' + node.target for a method.",
    ),
    checks=(
        Check("nodes in order, by number", "rendering", 1.5, sees(known, simple)),
        Check("keywords and methods", "rendering", 1.5, sees(known, keywords, granted=(FROM_ONE,))),
    ),
)
