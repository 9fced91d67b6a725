"""Hidden checks and controls of exercise 04.4."""

from autograder.exercises.fx_capture.cost_annotator import COUNT, counts
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked


def views(draw: Draw) -> list[Asked]:
    """Return graphs with halves of one tensor and with a transposed tensor, which keep their bases alive."""
    return [_halves(draw), _halves(draw), _transposed(draw)]


def _halves(draw: Draw) -> Asked:
    graph = RandomGraph(draw)
    x = graph.input(draw.integer(2, 5), 2 * draw.integer(1, 5))
    h = graph.call("relu", At(x))
    halves = graph.call("chunk", At(h), 2, dim=1)
    first, second = graph.call("getitem", At(halves), 0), graph.call("getitem", At(halves), 1)
    early = graph.call("neg", At(second))
    late = graph.call("add", At(early), At(graph.call("relu", At(early))))
    total = graph.call("add", At(late), At(first))  # one half keeps the whole base alive
    return graph.asked(At(total), "halves of one tensor")


def _transposed(draw: Draw) -> Asked:
    graph = RandomGraph(draw)
    m, n, k = draw.integer(2, 6), draw.integer(2, 6), draw.integer(2, 6)
    x, y = graph.input(k, n), graph.input(m, n)
    turned = graph.call("transpose", At(graph.call("relu", At(x))), 0, 1)
    early = graph.call("gelu", At(y))
    late = graph.call("add", At(early), At(graph.call("neg", At(early))))
    return graph.asked(At(graph.call("matmul", At(late), At(turned))), "a view that outlives its base's readers")


def twice(draw: Draw) -> list[Asked]:
    """Return a graph with the same tensor as both operands, a broadcast operand, and an unused value."""
    graph = RandomGraph(draw)
    rows, width = draw.integer(2, 6), draw.integer(2, 6)
    x, b = graph.input(rows, width), graph.input(width)
    square = graph.call("mul", At(x), At(x))
    graph.call("neg", At(square))
    total = graph.call("add", At(square), At(b))
    return [graph.asked([At(total), At(x)], "one operand twice, and a result that nobody reads")]


def batches(draw: Draw) -> list[Asked]:
    """Return batched matrix products, including matrices with one row."""
    asked = []
    for rows in (1, draw.integer(3, 6)):
        graph = RandomGraph(draw)
        b, k, n = draw.sample(range(2, 7), 3)
        x, y = graph.input(b, rows, k), graph.input(b, k, n)
        total = graph.call("softmax", At(graph.call("matmul", At(x), At(y))), dim=-1)
        asked.append(graph.asked(At(total), "a stack of products"))
    return asked


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("views cost nothing and keep their base alive", "views", 1.4, counts("views", COUNT, views)),
        Check("operands twice, results unread", "odd graphs", 1.3, counts("odd graphs", ["bytes"], twice)),
        Check("stacks of products", "odd sizes", 1.3, counts("odd sizes", ["flops"], batches)),
    ),
    controls=(
        ANSWERS.reference(9),
        ANSWERS.edited("nothing is freed", 7.2, ("if born[n] <= i <= last[n]", "")),
        ANSWERS.edited(
            "an operation for each element",
            9,
            ("flops[node.name] = 0", "flops[node.name] = values[node].numel() if works else 0"),
        ),
        ANSWERS.edited(
            "views own memory",
            7.6,
            ("return base(node.all_input_nodes[0]) if node.target in VIEWS else node", "return node"),
            (" and node.target not in VIEWS:", ":"),
            ("values[n].nbytes for n in born", "getattr(values[n], 'nbytes', 0) for n in born"),
        ),
        ANSWERS.edited(
            "the second operand's first size", 7.7, ("values[node.args[0]].shape[-1]", "values[node.args[1]].shape[0]")
        ),
        ANSWERS.edited("one FLOP a product", 7.4, ("= 2 * values", "= values")),
    ),
)
