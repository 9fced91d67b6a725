"""Hidden checks and controls of exercise 04.5."""

from autograder.exercises.fx_capture.render_graph import BELIEFS, rendered
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked, sees


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


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("nested arguments and results", "nesting", 1, sees(rendered, nested, BELIEFS)),
        Check("texts, truth values and numbers", "literals", 1, sees(rendered, literals, BELIEFS)),
    ),
    controls=(
        ANSWERS.reference(5),
        ANSWERS.edited(
            "by name",
            0,
            ("labels[node] = f'%{number}'", "labels[node] = f'%{node.name}'"),
            ("f'%{number} = {line}'", "f'%{node.name} = {line}'"),
        ),
        ANSWERS.edited("keywords as written", 5, ("sorted(node.kwargs)", "node.kwargs"), below=True),
        ANSWERS.edited("texts without quotes", 5, ("repr(value)", "str(value)"), below=True),
        ANSWERS.edited("lists as tuples", 5, ("f'[{inside}]'", "f'({inside})'"), below=True),
    ),
)
