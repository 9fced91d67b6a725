"""Exercise 04.4: FLOPs and bytes of every node of a graph, and the peak of live memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from autograder.exercises.programs.random_graphs import At, RandomGraph, mixed, pointwise_chain
from autograder.exercises.questions import kept
from autograder.host.checks.known_mistakes import Mistake, mistakes_made
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer, Asked, difference
from autograder.host.kinds.differences import same

Counts = list[tuple[Mapping[str, Any], Any]]
"""What an answer gives with each combination of known mistakes; the first is right."""


variants = kept(__name__, "variants")
tells = kept(__name__, "tells")
KEYS = ("flops", "bytes", "peak_bytes")

MISTAKES = {
    "flops": (
        Mistake({"product": 1}, "a product takes k multiplications and k additions: 2 · k operations.", "FLOPs"),
        Mistake({"views": 1}, "a view computes nothing.", "views"),
        Mistake(
            {"first_of_second": True},
            "k is the last size of the first operand; in a stack of matrices the second operand's first size is no "
            "size of a matrix.",
            "odd sizes",
        ),
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
        Mistake({"late_inputs": True}, "inputs are alive from the start, not from their own node on.", "liveness"),
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
                raise CheckFailedError(f"annotate_costs returned {given!r:.80}; expected a dict of {', '.join(KEYS)}.")
        for key in keys:
            _require([dict(given).get(key) for given in found], key, asked, category)

    return run


def _require(found: Sequence[Any], key: str, asked: Sequence[Asked], category: str) -> None:
    counted_as = [_counts(each, key) for each in asked]

    def right(given: Any, counts: Counts, options: Mapping[str, Any]) -> bool:
        return any(same(given, count) for mistaken, count in counts if mistaken == options)

    known = sorted(MISTAKES[key], key=lambda mistake: mistake.counted != category)
    mistakes = mistakes_made(lambda options: all(map(right, found, counted_as, [options] * len(asked))), known)
    if mistakes is None:
        at = next(i for i, given in enumerate(found) if not right(given, counted_as[i], {}))
        told = "it is missing." if found[at] is None else difference(found[at], counted_as[at][0][1])
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
        if all(any(tells(each.make, dict(each.arguments), key, options) for each in asked) for key, options in wrong):
            return asked


def _counts(asked: Asked, key: str) -> Counts:
    counts: Counts = variants(asked.make, dict(asked.arguments), key)
    return counts


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
    """Return graphs in which a value stays alive during a long chain, and one with an input that is used late."""
    asked = [mixed(draw, views=False).asked_whole("an input that is used late")]
    for _ in range(2):
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
        Check("FLOPs of products and pointwise steps", "FLOPs", 1.5, counts("FLOPs", ["flops"], products)),
        Check("bytes of products and pointwise steps", "bytes", 1, counts("bytes", ["bytes"], products)),
        Check("the peak of a residual over a chain", "liveness", 3, counts("liveness", ["peak_bytes"], residuals)),
    ),
)
