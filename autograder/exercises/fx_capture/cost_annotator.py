"""Exercise 04.4: FLOPs and bytes of every node of a graph, and the peak of live memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed, pointwise_chain
from autograder.host.checks.known_mistakes import Mistake, mistakes_made
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer, Asked, difference, made, same
from autograder.protocol import Json

Inputs = Sequence[torch.Tensor]
VIEWS = {"transpose", "chunk", "getitem"}


def flops(module: fx.GraphModule, inputs: Inputs, *, other: int = 0, views: int = 0, product: int = 2) -> Json:
    """Return the FLOPs of each node: those of products, and `other` for each element of another function's result.

    `views` and `product` other than 0 and 2 give wrong counts.
    """
    values, found = _values(module, inputs), {}
    for node in module.graph.nodes:
        size = _size(values[node]) if node.op.startswith("call") else 0
        each = product * values[node.args[0]].shape[-1] if _name(node) == "matmul" else other
        found[node.name] = size * (views if _name(node) in VIEWS else each)
    return found


def moved(
    module: fx.GraphModule, inputs: Inputs, *, each_use: bool = False, views_cost: bool = False, reads: bool = True
) -> Json:
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
) -> Json:
    """Return the largest sum of bytes alive while a node runs; the options give wrong counts."""
    nodes, values = list(module.graph.nodes), _values(module, inputs)
    base = _base if views == "keep their base" else lambda node: node
    last = {base(node): i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes):
        for read in node.all_input_nodes:
            last[base(read)] = i
    owners = [n for n in nodes if n.op != "output" and (views == "own memory" or _base(n) is n)]
    start = {n: -1 if n.op == "placeholder" else nodes.index(n) for n in owners}
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


MISTAKES = {
    "flops": (
        Mistake({"product": 1}, "a product takes k multiplications and k additions: 2 · k operations.", "FLOPs"),
        Mistake({"views": 1}, "a view computes nothing.", "views"),
    ),
    "bytes": (
        Mistake({"each_use": True}, "an operand that is read twice by one node counts once.", "bytes"),
        Mistake({"reads": False}, "only what is written was counted; what is read moves, too.", "bytes"),
        Mistake({"views_cost": True}, "a view moves no bytes.", "views"),
    ),
    "peak_bytes": (
        Mistake({"all_alive": True}, "the peak counts every tensor as if none were ever freed.", "liveness"),
        Mistake(
            {"die_at_once": True},
            "an operand is counted as freed before the node that reads it last has run; both are alive then.",
            "liveness",
        ),
        Mistake(
            {"views": "own memory"},
            "a view owns no memory, and its base stays alive as long as the view is read.",
            "views",
        ),
        Mistake(
            {"views": "forget their base"},
            "a base was freed after its own last reader; it stays alive as long as one of its views is read.",
            "views",
        ),
    ),
}
COUNT = {"flops": flops, "bytes": moved, "peak_bytes": peak}


def counts(
    category: str, keys: Collection[str], programs: Callable[[Draw], Sequence[Asked]]
) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that these entries of the answer are right for every program; one wrong program loses all points.

    A mistake that the check of another category counts costs nothing here. One of the programs shows each mistake that
    is counted here.
    """

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        asked = _telling(draw, programs, category, keys)
        found = [answer.ask(each) for each in asked]
        for given in found:
            if not isinstance(given, dict):
                raise CheckFailedError(f"annotate_costs returned {given!r:.80}; expected a dict of {', '.join(COUNT)}.")
        for key in keys:
            _require([dict(given).get(key) for given in found], key, asked, category)  # type: ignore[arg-type]

    return run


def _require(found: Sequence[Any], key: str, asked: Sequence[Asked], category: str) -> None:
    programs = [(module, inputs) for module, *inputs in map(made, asked)]

    def right(given: Any, program: tuple[fx.GraphModule, Inputs], options: Mapping[str, Any]) -> bool:
        # to count one operation for each element of other functions is finer, and no mistake
        finer = [{"other": 1}] if key == "flops" else []
        return any(same(given, COUNT[key](*program, **{**options, **more})) for more in ({}, *finer))

    known = sorted(MISTAKES[key], key=lambda mistake: mistake.counted != category)
    mistakes = mistakes_made(lambda options: all(map(right, found, programs, [options] * len(asked))), known)
    if mistakes is None:
        at = next(i for i, given in enumerate(found) if not right(given, programs[i], {}))
        told = "it is missing." if found[at] is None else difference(found[at], COUNT[key](*programs[at]))
        raise CheckFailedError(f"For {asked[at].name}: {key}: {told}")
    counted = [mistake.says for mistake in mistakes if mistake.counted == category]
    if counted:
        raise CheckFailedError(f"For {asked[0].name}: {key}: {counted[0]}")


def _telling(
    draw: Draw, programs: Callable[[Draw], Sequence[Asked]], category: str, keys: Collection[str]
) -> Sequence[Asked]:
    """Return programs among which one shows each mistake that this check counts."""
    wrong = [(key, m.options) for key in keys for m in MISTAKES[key] if m.counted == category]
    while True:
        asked = programs(draw)
        if all(any(_tells(each, key, options) for each in asked) for key, options in wrong):
            return asked


def _tells(asked: Asked, key: str, options: Mapping[str, Any]) -> bool:
    module, *inputs = made(asked)
    return bool(COUNT[key](module, inputs) != COUNT[key](module, inputs, **options))


def products(draw: Draw) -> list[Asked]:
    """Return graphs without views, in which a node reads another one twice."""
    asked = []
    for _ in range(3):
        graph = mixed(draw, views=False)
        last = len(graph.steps) - 1
        graph.call("mul", At(last), At(last))
        asked.append(graph.asked_whole("products and pointwise steps"))
    return asked


def residuals(draw: Draw) -> list[Asked]:
    """Return graphs in which a value stays alive during a long chain."""
    asked = []
    for _ in range(3):
        graph = RandomGraph(draw)
        x = graph.input(draw.integer(2, 9), draw.integer(2, 9))
        early = graph.call("relu", At(x))
        late = pointwise_chain(graph, graph.call("gelu", At(early)), draw.integer(2, 5))
        asked.append(graph.asked(At(graph.call("add", At(late), At(early))), "a residual over a long chain"))
    return asked


EXERCISE = Exercise(
    title="Annotate costs",
    kind=Kind.ANALYSIS,
    entry_point="annotate_costs",
    points=9,
    wall_s=30,
    masked=("course_lib.graph", "course_lib.profiling"),
    hints=(
        "Run the graph once with an Interpreter that keeps every node's value; numel() and nbytes say the rest.",
        "node.all_input_nodes lists each operand once. For memory, give every node a base: a view has its operand's.",
        "Number the nodes. A base lives from its own number, inputs from the start, to the number of its last reader; "
        "add up what lives at each number and take the largest sum.",
    ),
    checks=(
        Check("FLOPs of products and pointwise steps", "FLOPs", 1.6, counts("FLOPs", ["flops"], products)),
        Check("bytes of products and pointwise steps", "bytes", 1.6, counts("bytes", ["bytes"], products)),
        Check("the peak of a residual over a chain", "liveness", 1.8, counts("liveness", ["peak_bytes"], residuals)),
    ),
)
