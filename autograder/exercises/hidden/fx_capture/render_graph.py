"""Hidden checks and controls of exercise 04.5."""

from __future__ import annotations

from autograder.exercises.fx_capture import render_graph as visible
from autograder.exercises.programs.random_graphs import At, RandomGraph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.analysis import Asked, sees

rendered, BELIEFS = visible.rendered, visible.BELIEFS


def nested(draw: Draw) -> list[Asked]:
    """Lists of nodes, nested results, and an input that nobody reads."""
    graph = RandomGraph(draw)
    x, y = graph.input(2, draw.integer(1, 4)), graph.input(2, 3)
    graph.input(1)
    joined = graph.call("cat", [At(x), At(y)], dim=1)
    parts = graph.call("chunk", At(joined), 2, dim=0)
    half = graph.call("getitem", At(parts), draw.integer(0, 1))
    return [graph.asked([At(half), [At(joined), At(x)]], "nested arguments and results")]


def literals(draw: Draw) -> list[Asked]:
    """A text, a truth value and numbers among the arguments."""
    graph = RandomGraph(draw)
    x = graph.input(2, 2)
    graph.call("assert", True, draw.choice(("x is a matrix", "it's a matrix")))
    scaled = graph.call("mul", At(x), draw.choice((0.5, 2, -1)))
    return [graph.asked(At(graph.call("sum", At(scaled), [0, 1], keepdim=False)), "texts, truth values and numbers")]


REFERENCE = """
def render(module, *inputs):
    labels, lines = {}, []
    for number, node in enumerate(module.graph.nodes):
        labels[node] = f"%{number}"
        given = [written(a, labels) for a in node.args]
        given += [f"{key}={written(node.kwargs[key], labels)}" for key in sorted(node.kwargs)]
        if node.op == "placeholder":
            lines.append(f"{labels[node]} = input")
        elif node.op == "output":
            lines.append(f"return {given[0]}")
        else:
            name = "." + node.target if node.op == "call_method" else node.target.__name__
            lines.append(f"{labels[node]} = {name}({', '.join(given)})")
    return "\\n".join(lines)


def written(value, labels):
    if isinstance(value, fx.Node):
        return labels[value]
    if isinstance(value, (tuple, list)):
        inside = ", ".join(written(item, labels) for item in value)
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return repr(value)
"""
BY_NAME = REFERENCE.replace('f"%{number}"', 'f"%{node.name}"')
AS_WRITTEN = REFERENCE.replace("sorted(node.kwargs)", "node.kwargs")
PLAIN = REFERENCE.replace("return repr(value)", "return str(value)")
FLAT = REFERENCE.replace('f"({inside})" if isinstance(value, tuple) else f"[{inside}]"', 'f"({inside})"')

HIDDEN = HiddenPart(
    checks=(
        Check("nested arguments and results", "nesting", 1, sees(rendered, nested, BELIEFS)),
        Check("texts, truth values and numbers", "literals", 1, sees(rendered, literals, BELIEFS)),
    ),
    controls=(
        Control("reference", REFERENCE, 5),
        Control("by name", BY_NAME, 0),
        Control("keywords as written", AS_WRITTEN, 5, below=True),
        Control("texts without quotes", PLAIN, 5, below=True),
        Control("lists as tuples", FLAT, 5, below=True),
    ),
)
