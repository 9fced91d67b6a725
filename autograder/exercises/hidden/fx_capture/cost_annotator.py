"""Hidden checks and controls of exercise 04.4."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from autograder.exercises.fx_capture.cost_annotator import KEYS, MISTAKES, Counts, counts
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.random_graphs import At, RandomGraph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.analysis import Asked, made


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


Inputs = Sequence[torch.Tensor]
VIEWS = {"transpose", "chunk", "getitem"}


def flops(
    module: fx.GraphModule,
    inputs: Inputs,
    *,
    other: int = 0,
    views: int = 0,
    product: int = 2,
    first_of_second: bool = False,
) -> Any:
    """Return the FLOPs of each node: those of products, and `other` for each element of another function's result.

    `views` and `product` other than 0 and 2 give wrong counts, and so does `first_of_second`, another size for k.
    """
    values, found = _values(module, inputs), {}
    for node in module.graph.nodes:
        size = _size(values[node]) if node.op.startswith("call") else 0
        each = other
        if _name(node) == "matmul":
            left, right = (values[operand].shape for operand in node.args)
            each = product * (right[0] if first_of_second else left[-1])
        found[node.name] = size * (views if _name(node) in VIEWS else each)
    return found


def moved(
    module: fx.GraphModule, inputs: Inputs, *, each_use: bool = False, views_cost: bool = False, reads: bool = True
) -> Any:
    """Return the bytes that each node moves; the options give wrong counts."""
    values, found = _values(module, inputs), {}
    for node in module.graph.nodes:
        works = node.op.startswith("call") and (views_cost or _name(node) not in VIEWS)
        read = _reads(node, each_use) if reads else []
        found[node.name] = sum(_bytes(values[n]) for n in (node, *read)) if works else 0
    return found


def peak(
    module: fx.GraphModule,
    inputs: Inputs,
    *,
    all_alive: bool = False,
    die_at_once: bool = False,
    views: str = "keep their base",
    late_inputs: bool = False,
) -> Any:
    """Return the largest sum of bytes alive while a node runs; the options give wrong counts."""
    nodes, values = list(module.graph.nodes), _values(module, inputs)
    base = _base if views == "keep their base" else lambda node: node
    last = {base(node): i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes):
        for read in node.all_input_nodes:
            last[base(read)] = i
    owners = [n for n in nodes if n.op != "output" and (views == "own memory" or _base(n) is n)]
    start = {n: -1 if n.op == "placeholder" and not late_inputs else nodes.index(n) for n in owners}
    if all_alive:
        return sum(_bytes(values[n]) for n in owners)
    ends = {n: last[n] - 1 if die_at_once and last[n] > start[n] else last[n] for n in owners}
    return max(sum(_bytes(values[n]) for n in owners if start[n] <= i <= ends[n]) for i in range(len(nodes)))


def _values(module: fx.GraphModule, inputs: Inputs) -> dict[fx.Node, Any]:
    values: dict[fx.Node, Any] = {}

    class Keeping(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            values[n] = super().run_node(n)
            return values[n]

    Keeping(module, garbage_collect_values=False).run(*inputs)
    return values


def _size(value: Any) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _bytes(value: Any) -> int:
    return value.nbytes if isinstance(value, torch.Tensor) else 0


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _reads(node: fx.Node, each_use: bool) -> list[fx.Node]:
    if not each_use:
        return list(node.all_input_nodes)
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def _base(node: fx.Node) -> fx.Node:
    while node.op == "call_function" and _name(node) in VIEWS:
        node = node.all_input_nodes[0]
    return node


COUNT: Mapping[str, Callable[..., Any]] = {"flops": flops, "bytes": moved, "peak_bytes": peak}


def variants(make: str, arguments: Mapping[str, Any], key: str) -> Counts:
    """Return the counts of a program with no known mistake, with each, and with each two."""
    module, *inputs = made(Asked(make, arguments, ""))
    chosen = [pair for count in (0, 1, 2) for pair in itertools.combinations([m.options for m in MISTAKES[key]], count)]
    several = [dict(item for options in each for item in options.items()) for each in chosen]
    # to count one operation for each element of other functions is finer, and no mistake
    finer = [{}, {"other": 1}] if key == "flops" else [{}]
    return [(options, COUNT[key](module, inputs, **{**options, **more})) for options in several for more in finer]


def tells(make: str, arguments: Mapping[str, Any], key: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a program shows a mistake."""
    module, *inputs = made(Asked(make, arguments, ""))
    return bool(COUNT[key](module, inputs) != COUNT[key](module, inputs, **options))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("views cost nothing and keep their base alive", "views", 2, counts("views", KEYS, views)),
        Check("operands twice, results unread", "odd graphs", 0.5, counts("odd graphs", ["bytes"], twice)),
        Check("stacks of products", "odd sizes", 1, counts("odd sizes", ["flops"], batches)),
    ),
    controls=(
        ANSWERS.reference(9),
        ANSWERS.edited("nothing is freed", 6, ("if born[n] <= i <= last[n]", "")),
        ANSWERS.edited(
            "an operation for each element",
            9,
            ("flops[node.name] = 0", "flops[node.name] = values[node].numel() if works else 0"),
        ),
        ANSWERS.edited(
            "views own memory",
            7,
            ("return base(node.all_input_nodes[0]) if node.target in VIEWS else node", "return node"),
            (" and node.target not in VIEWS:", ":"),
            ("values[n].nbytes for n in born", "getattr(values[n], 'nbytes', 0) for n in born"),
            trap="A view owns nothing and keeps its base alive",
        ),
        ANSWERS.edited(
            "the second operand's first size", 8, ("values[node.args[0]].shape[-1]", "values[node.args[1]].shape[0]")
        ),
        ANSWERS.edited("one FLOP a product", 7.5, ("= 2 * values", "= values")),
    ),
)
