"""Hidden checks and controls of exercise 04.5."""

from typing import Any

from torch import fx

from autograder.exercises.fx_capture.render_graph import FROM_ONE, ROUND_LISTS
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked, Belief, known_of, sees


def nested(draw: Draw) -> list[Asked]:
    """Return graphs with lists of nodes, nested results, and an unused input."""
    graph = RandomGraph(draw)
    x, y = graph.input(2, draw.integer(1, 4)), graph.input(2, 3)
    graph.input(1)
    joined = graph.call("cat", [At(x), At(y)], dim=1)
    parts = graph.call("chunk", At(joined), 2, dim=0)
    half = graph.call("getitem", At(parts), draw.integer(0, 1))
    return [graph.asked([At(half), [At(joined), [At(x)]]], "nested arguments and results").alone()]


def literals(draw: Draw) -> list[Asked]:
    """Return graphs with a string, a boolean and numbers as arguments."""
    graph = RandomGraph(draw)
    x = graph.input(2, 2)
    graph.call("assert", True, draw.choice(("x is a matrix", "it's a matrix")))
    scaled = graph.call("mul", At(x), draw.choice((0.5, 2, -1)))
    return [
        graph.asked(At(graph.call("sum", At(scaled), [0, 1], keepdim=False)), "texts, truth values and numbers").alone()
    ]


def rendered(module: fx.GraphModule, *inputs: object) -> str:
    """Return one line per node, numbered in order: `%0 = input`, `%1 = relu(%0)`, `%2 = .size(%1, 0)`, `return %2`."""
    return _rendered(module, lambda number, node: f"%{number}")


def _rendered(module: fx.GraphModule, label: Any, *, sorted_keywords: bool = True, **styles: Any) -> str:
    labels = {node: label(number, node) for number, node in enumerate(module.graph.nodes)}
    lines = []
    for node in module.graph.nodes:
        if node.op == "output":
            lines.append(f"return {_written(node.args[0], labels, **styles)}")
            continue
        if node.op == "placeholder":
            lines.append(f"{labels[node]} = input")
            continue
        keywords = sorted(node.kwargs.items()) if sorted_keywords else list(node.kwargs.items())
        given = [_written(a, labels, **styles) for a in node.args]
        given += [f"{key}={_written(value, labels, **styles)}" for key, value in keywords]
        name = f".{node.target}" if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
        lines.append(f"{labels[node]} = {name}({', '.join(given)})")
    return "\n".join(lines)


def _written(
    value: Any, labels: dict[fx.Node, str], *, comma: bool = False, text: Any = repr, forms: Any = ("()", "[]")
) -> str:
    if isinstance(value, fx.Node):
        return labels[value]
    if isinstance(value, tuple | list):
        inside = ", ".join(_written(v, labels, comma=comma, text=text, forms=forms) for v in value)
        inside += "," if comma and len(value) == 1 and isinstance(value, tuple) else ""
        begin, end = forms[isinstance(value, list)]
        return f"{begin}{inside}{end}"
    return str(text(value))


COMMA = "a tuple of one stands as (%0), without a comma after it."


BELIEFS = (
    Belief(lambda module, *i: _rendered(module, lambda number, node: f"%{number + 1}"), FROM_ONE),
    Belief(lambda module, *i: _rendered(module, lambda number, node: f"%{number}", comma=True), COMMA),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{node.name}"),
        "nodes are called by their names; number them in order, so that renaming changes nothing.",
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", sorted_keywords=False),
        "keyword arguments stand in the order of writing; sort them by name, so that the text is the same for both.",
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", text=str),
        "a text stands without quotes, like a name; write values by repr.",
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", forms=("()", "()")),
        ROUND_LISTS,
    ),
    Belief(
        lambda module, *i: _rendered(module, lambda number, node: f"%{number}", forms=("[]", "[]")),
        "tuples stand in square brackets; those are for lists, and tuples have round ones.",
    ),
)


known = known_of(rendered, BELIEFS)
SLIPS = (FROM_ONE, ROUND_LISTS)
"""What the visible checks count."""

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("nested arguments and results", "nesting", 1, sees(known, nested, granted=SLIPS)),
        Check("texts, truth values and numbers", "literals", 1, sees(known, literals, granted=SLIPS)),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited(
            "by name",
            0,
            ("labels[node] = f'%{number}'", "labels[node] = f'%{node.name}'"),
            ("f'%{number} = {line}'", "f'%{node.name} = {line}'"),
        ),
        ANSWERS.edited("from one", 3.5, ("enumerate(module.graph.nodes)", "enumerate(module.graph.nodes, 1)")),
        ANSWERS.edited("keywords as written", 5, ("sorted(node.kwargs)", "node.kwargs"), below=True),
        ANSWERS.edited("texts without quotes", 5, ("repr(value)", "str(value)"), below=True),
        ANSWERS.edited("lists as tuples", 3.5, ("f'[{inside}]'", "f'({inside})'")),
    ),
)
