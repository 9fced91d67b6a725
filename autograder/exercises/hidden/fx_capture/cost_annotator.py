"""Hidden checks and controls of exercise 04.4."""

from __future__ import annotations

from autograder.exercises.fx_capture import cost_annotator as visible
from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.analysis import Asked, sees

costs, BELIEFS = visible.costs, visible.BELIEFS


def views(draw: Draw) -> list[Asked]:
    """A transposed operand, whose base has to stay alive, and halves of one tensor."""
    graphs = [mixed(draw), mixed(draw)]
    asked = [g.asked(At(len(g.steps) - 1), "a view that outlives its base's other readers") for g in graphs]
    graph = RandomGraph(draw)
    x = graph.input(draw.integer(2, 5), 2 * draw.integer(1, 5))
    h = graph.call("relu", At(x))
    halves = graph.call("chunk", At(h), 2, dim=1)
    first, second = graph.call("getitem", At(halves), 0), graph.call("getitem", At(halves), 1)
    early = graph.call("neg", At(second))
    late = graph.call("add", At(early), At(graph.call("relu", At(early))))
    total = graph.call("add", At(late), At(first))  # one half keeps the whole base alive
    return [*asked, graph.asked(At(total), "halves of one tensor")]


def twice(draw: Draw) -> list[Asked]:
    """One operand in both places, a broadcast one, and a value that nobody reads."""
    graph = RandomGraph(draw)
    rows, width = draw.integer(2, 6), draw.integer(2, 6)
    x, b = graph.input(rows, width), graph.input(width)
    square = graph.call("mul", At(x), At(x))
    graph.call("neg", At(square))
    total = graph.call("add", At(square), At(b))
    return [graph.asked([At(total), At(x)], "one operand twice, and a result that nobody reads")]


def batches(draw: Draw) -> list[Asked]:
    """Products of stacks of matrices, of one row among others."""
    asked = []
    for rows in (1, draw.integer(3, 6)):
        graph = RandomGraph(draw)
        b, k, n = draw.integer(2, 4), draw.integer(2, 6), draw.integer(2, 6)
        x, y = graph.input(b, rows, k), graph.input(b, k, n)
        total = graph.call("softmax", At(graph.call("matmul", At(x), At(y))), dim=-1)
        asked.append(graph.asked(At(total), "a stack of products"))
    return asked


REFERENCE = """
VIEWS = ("transpose", "chunk", "getitem")

def annotate_costs(module, *inputs):
    values, nodes = {}, list(module.graph.nodes)

    class Keeping(fx.Interpreter):
        def run_node(self, node):
            values[node] = super().run_node(node)
            return values[node]

    Keeping(module, garbage_collect_values=False).run(*inputs)
    flops, moved = {}, {}
    for node in nodes:
        works = node.op.startswith("call") and name(node) not in VIEWS
        flops[node.name] = values[node].numel() if works else 0
        if name(node) == "matmul":
            flops[node.name] *= 2 * values[node.args[0]].shape[-1]
        moved[node.name] = sum(values[n].nbytes for n in (node, *node.all_input_nodes)) if works else 0
    born, last = {}, {}
    for number, node in enumerate(nodes[:-1]):
        if base(node) is node:
            born[node] = -1 if node.op == "placeholder" else number
            last[node] = number
    for number, node in enumerate(nodes):
        for read in (*node.all_input_nodes, *([] if node.op == "output" else [node])):
            last[base(read)] = number
    alive = [sum(values[n].nbytes for n in born if born[n] <= i <= last[n]) for i in range(len(nodes))]
    return {"flops": flops, "bytes": moved, "peak_bytes": max(alive)}


def name(node):
    return getattr(node.target, "__name__", node.target)


def base(node):
    return base(node.all_input_nodes[0]) if name(node) in VIEWS else node
"""
ALL_ALIVE = REFERENCE.replace("if born[n] <= i <= last[n]", "")
VIEWS_OWN = REFERENCE.replace(
    "return base(node.all_input_nodes[0]) if name(node) in VIEWS else node", "return node"
).replace("values[n].nbytes for n in born", "getattr(values[n], 'nbytes', 0) for n in born")
ONE_FLOP = REFERENCE.replace("*= 2 * values", "*= values")

HIDDEN = HiddenPart(
    checks=(
        Check("views keep their base alive", "views", 1.6, sees(costs, views, BELIEFS)),
        Check("operands twice, results unread", "odd graphs", 1, sees(costs, twice, BELIEFS)),
        Check("stacks of products", "odd sizes", 1, sees(costs, batches, BELIEFS)),
    ),
    controls=(
        Control("reference", REFERENCE, 9),
        Control("nothing is freed", ALL_ALIVE, 9, below=True),
        Control("views own memory", VIEWS_OWN, 9, below=True),
        Control("one FLOP a product", ONE_FLOP, 9, below=True),
    ),
)
