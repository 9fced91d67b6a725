"""Exercise 11.4: a `CustomGraphPass` whose `uuid()` tells passes apart that rewrite differently, and no others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from autograder.exercises.questions import Question
from autograder.host import comparison
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.value import ValueAnswer
from course_lib.graph import to_data

Options = Question
OPERATORS = ("relu", "tanh", "sin", "exp", "abs", "neg")
READS_ITSELF = "no earlier node has that name"
SAID = {
    "None": "uuid() returned None: Inductor then leaves its cache aside for every program.",
    "''": "uuid() returned an empty text; put what the pass does into it.",
}


def options(draw: Draw) -> Options:
    """Return options of a pass that bounds two of the operators."""
    return {"operators": draw.sample(OPERATORS, 2), "limit": draw.integer(4, 64) / 4, "verbose": False}


def graph_of(steps: Sequence[str], kept: int) -> fx.GraphModule:
    """Return a graph of these operators one after the other, which also adds the result of step `kept` to the last."""
    graph = fx.Graph()
    values = [graph.placeholder("x")]
    for step in steps:
        values.append(graph.call_function(getattr(torch.ops.aten, step).default, (values[-1],)))
    graph.output((values[-1], graph.call_function(torch.ops.aten.add.Tensor, (values[-1], values[kept]))))
    return fx.GraphModule({}, graph)


def bounded(steps: Sequence[str], kept: int, asked: Mapping[str, Any], x: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the graph gives for x once its operators are bounded as `asked`."""
    values = [x]
    for step in steps:
        made = getattr(torch, step)(values[-1])
        values.append(made.clamp(-asked["limit"], asked["limit"]) if step in asked["operators"] else made)
    return values[-1], values[-1] + values[kept]


def bounds(answer: ValueAnswer, draw: Draw) -> None:
    """Require that the pass changes graphs as it should, for random options; the check of the pass itself."""
    for number in range(3):
        asked = {**options(draw), "limit": draw.integer(1, 3) / 8}  # so that each clamp changes something
        steps = draw.sample(OPERATORS, len(OPERATORS))
        if number == 0:  # the last call gives negative numbers only, and is bounded
            asked["operators"] = draw.sample([draw.choice(OPERATORS[:3]), "neg"], 2)
            steps = [*(step for step in steps if step not in ("exp", "neg")), "exp", "neg"]
        _require_bounded(answer, asked, steps, draw)


def _require_bounded(answer: ValueAnswer, asked: Options, steps: Sequence[str], draw: Draw) -> None:
    kept, x = draw.integer(1, len(steps) - 1), draw.normal(4, 16)
    told = f"For operators {', '.join(asked['operators'])} and limit {asked['limit']}"
    try:
        _, artifact = answer.run_named_pass(asked, _data(steps, kept))
    except CheckFailedError as error:
        if READS_ITSELF in str(error):
            raise CheckFailedError(
                f"{told} a clamp reads itself: replace_all_uses_with(clamp) also changes the clamp's own argument. "
                "Replace the input of the other readers only, as in notebook 05."
            ) from None
        raise
    calls = [call.packet.rpartition(".")[2] for name, call in artifact.called.items() if name not in artifact.dead]
    right = [call for step in steps for call in (step, "clamp")[: 1 + (step in asked["operators"])]] + ["add"]
    if sorted(calls) != sorted(right):
        raise CheckFailedError(
            f"{told} the graph calls {contrasted(calls, right)} for its output. A clamp counts if something reads it."
        )
    eagers = bounded(steps, kept, asked, x)
    outputs, truths = answer.run(artifact, [x]), bounded(steps, kept, asked, x.double())
    if len(outputs) != len(eagers):
        raise CheckFailedError(f"{told} the graph has {len(outputs)} results; before the pass it had {len(eagers)}.")
    try:
        for output, truth, eager in zip(outputs, truths, eagers, strict=True):
            comparison.require_close(output, truth, eager, f"{told} a result")
    except CheckFailedError as error:
        raise CheckFailedError(
            f"{error} Each reader of a bounded call has to read its clamp, the output too, with both limits."
        ) from None


def _data(steps: Sequence[str], kept: int) -> Question:
    return to_data(graph_of(steps, kept))[0]


Pair = tuple[str, Options, Options]


def tells(
    equal: Callable[[Draw, Options], Sequence[Pair]], different: Callable[[Draw, Options], Sequence[Pair]]
) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that pairs of `equal` have one uuid each, and pairs of `different` have two.

    Each pass is asked for its name twice, among all others in a drawn order and on graphs that are drawn. So neither
    the graph nor the turn of a question tells which passes are compared. The first item of a pair completes "Two
    passes ...".
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        bounds(answer, draw)  # a name for a pass that does nothing is worth nothing
        pairs = [(same, pair) for same, of in ((True, equal), (False, different)) for pair in of(draw, options(draw))]
        asked = {
            (number, place): (pair[1], pair[2])[place] for number, (_, pair) in enumerate(pairs) for place in (0, 1)
        }
        names: dict[tuple[int, int], set[str]] = {turn: set() for turn in asked}
        for turn in draw.sample([*asked, *asked], 2 * len(asked)):
            names[turn].add(_name(answer, asked[turn], draw.sample(OPERATORS, len(OPERATORS))))
        for number, (same, (what, *_)) in enumerate(pairs):
            one, other = names[number, 0], names[number, 1]
            if message := next((SAID[name] for name in one | other if name in SAID), ""):
                raise CheckFailedError(message)
            if len(one) > 1 or len(other) > 1:
                raise CheckFailedError(f"Two passes with equal options do the same; uuid() {_CONSEQUENCE[True]}")
            if (one == other) is not same:
                raise CheckFailedError(f"Two passes {what}; uuid() {_CONSEQUENCE[same]}")

    return run


_CONSEQUENCE = {
    True: "differs between them, so the second compiles again although its result is in the cache. Leave out of the "
    "name what does not change the graph, and whatever belongs to one object or to one graph, such as id(self).",
    False: "is the same for both, so the second gets from the cache what the first made. Put everything into the name "
    "that changes the graph.",
}


def _name(answer: ValueAnswer, asked: Options, steps: Sequence[str]) -> str:
    found, _ = answer.run_named_pass(asked, _data(steps, 1))
    if not isinstance(found, str):
        raise MalformedAnswerError
    return found


def alike(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes with equal options."""
    return [("with equal options do the same", first, dict(first))]


def other_limit(draw: Draw, first: Options) -> list[Pair]:
    """Return passes whose limits differ, one of them by little."""
    return [
        ("with different limits do different things", first, {**first, "limit": first["limit"] + more})
        for more in (1.0, 2**-20)
    ]


def of_others(draw: Draw, first: Options) -> list[Pair]:
    """Return two passes for different operators."""
    other = [name for name in OPERATORS if name not in first["operators"]][:2]
    return [("for different operators do different things", first, {**first, "operators": other})]


EXERCISE = Exercise(
    title="Name a pass",
    kind=Kind.VALUE,
    entry_point="bound_pass",
    points=8,
    hints=(
        "What does the graph depend on: the options, or also the object, the time, the order of a set?",
        "Write into one text all that changes the graph, and nothing else. Two lists with the same operators in "
        "another order bound the same calls.",
        'For example `f"BoundPass 1 {sorted(operators)} {limit!r}"`, or its sha256 in hex. The number is a '
        "version of `__call__`: raise it with each change.",
    ),
    checks=(
        Check("the pass bounds the operators", "pass", 2, bounds),
        Check("equal options, and other limits", "limits", 2, tells(alike, other_limit)),
        Check("other operators", "operators", 1, tells(alike, of_others)),
    ),
)
