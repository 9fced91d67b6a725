"""Exercise 04.5: write a graph as text that does not depend on the names of nodes."""

from typing import Any

from torch import fx

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.analysis import Asked, Belief, sees


def rendered(module: fx.GraphModule, *inputs: object) -> str:
    """Return one line per node, numbered in order: `%0 = input`, `%1 = relu(%0)`, `%2 = .size(%1, 0)`, `return %2`."""
    return _rendered(module, lambda number, node: f"%{number}", sorted_keywords=True)


def _rendered(module: fx.GraphModule, label: Any, *, sorted_keywords: bool, comma: bool = False) -> str:
    labels = {node: label(number, node) for number, node in enumerate(module.graph.nodes)}
    lines = []
    for node in module.graph.nodes:
        if node.op == "output":
            lines.append(f"return {_written(node.args[0], labels, comma)}")
            continue
        if node.op == "placeholder":
            lines.append(f"{labels[node]} = input")
            continue
        keywords = sorted(node.kwargs.items()) if sorted_keywords else list(node.kwargs.items())
        given = [_written(a, labels, comma) for a in node.args]
        given += [f"{key}={_written(value, labels, comma)}" for key, value in keywords]
        name = f".{node.target}" if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
        lines.append(f"{labels[node]} = {name}({', '.join(given)})")
    return "\n".join(lines)


def _written(value: Any, labels: dict[fx.Node, str], comma: bool) -> str:
    if isinstance(value, fx.Node):
        return labels[value]
    if isinstance(value, tuple | list):
        inside = ", ".join(_written(v, labels, comma) for v in value)
        inside += "," if comma and len(value) == 1 and isinstance(value, tuple) else ""
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return repr(value)


COMMA = "a tuple of one stands as (%0), without a comma after it."
BELIEFS = (
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", sorted_keywords=True, comma=True), COMMA
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{node.name}", sorted_keywords=True),
        "nodes are called by their names; number them in order, so that renaming changes nothing.",
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", sorted_keywords=False),
        "keyword arguments stand in the order of writing; sort them by name, so that the text is the same for both.",
    ),
)


def simple(draw: Draw) -> list[Asked]:
    """Return graphs whose calls have only nodes as arguments, or nodes followed by numbers."""
    return [mixed(draw).asked_whole("a small graph").alone() for _ in range(2)]


def keywords(draw: Draw) -> list[Asked]:
    """Return graphs of calls with keyword arguments in both orders, and a method call."""
    asked = []
    for given in ({"dim": 0, "keepdim": True}, {"keepdim": True, "dim": 0}):
        graph = RandomGraph(draw)
        x = graph.input(draw.integer(2, 5), draw.integer(2, 5))
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
        Check("nodes in order, by number", "rendering", 1.6, sees(rendered, simple, BELIEFS)),
        Check("keywords and methods", "rendering", 1.4, sees(rendered, keywords, BELIEFS)),
    ),
)
