"""Exercise 07.1: predict how many graphs Dynamo makes of a program, and the size of each.

A test compares the host's own rules with Dynamo. For the steps see `course_lib.models.steps`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same, shortened
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Step = Mapping[str, Any]

WHOLE = ("compute", "size_if", "append")
BREAKING = ("print", "log", "item", "value_if")

known = kept(__name__, "known")


def breaks(steps: Sequence[Step]) -> bool:
    """Return whether Dynamo cannot capture the steps as one graph."""
    return any(s["do"] in BREAKING or ("body" in s and breaks(s["body"])) for s in steps)


def random_steps(draw: Draw, count: int, *, calls: bool = False, loops: bool = False) -> list[Step]:
    """Return `count` random steps, including calls and loops if these options are set."""
    steps: list[Step] = []
    for _ in range(count):
        kind = draw.choice(("compute", "compute", "compute", *WHOLE, *BREAKING))
        if calls and draw.chance(0.25):
            steps.append({"do": "call", "body": random_steps(draw, draw.integer(1, 3))})
        elif loops and draw.chance(0.2):
            body: list[Step] = [
                {"do": draw.choice(("compute", "size_if", "append"))} for _ in range(draw.integer(1, 2))
            ]
            if draw.chance(0.3):
                body.append({"do": draw.choice(("print", "log"))})
            steps.append({"do": "repeat", "times": draw.integer(2, 4), "body": body})
        else:
            steps.append({"do": kind})
    return steps


def predicts(part: str, programs: Callable[[Draw], list[list[Step]]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for every program; `part` is "graphs" or "sizes"."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for steps in programs(draw):
            found, about = answer.ask(steps), known(steps, part)
            expected = about["right"]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(
                    f"count_graphs returned {shortened(found, 60)}; expected a dict with the keys graphs and sizes."
                )
            if not same(found[part], expected):
                why = named_mistake(found[part], about["wrong"])
                raise CheckFailedError(
                    f"For {written(steps)} {part} is {contrasted(found[part], expected, most=60)}. {why}".strip()
                )

    return run


def written(steps: list[Step]) -> str:
    """Return the steps in one line."""
    parts = []
    for step in steps:
        inner = f"({written(step['body'])})" if "body" in step else ""
        parts.append(step["do"] + (f" {step['times']}x" if "times" in step else "") + inner)
    return ", ".join(parts)


def _straight(draw: Draw) -> list[list[Step]]:
    """Return programs without calls and loops; all kinds of steps occur."""
    every = [{"do": do} for do in ("compute", "print", "log", "value_if", "item", "append", "size_if")]
    followed: list[Step] = [{"do": do} for do in ("compute", "append", "compute", "size_if", "compute", "print")]
    some = [random_steps(draw, n) for n in (2, 3, 4, 5, 6, 7, 8, 9)]
    return [followed, draw.sample(every, len(every)), *some]


def _with_calls(draw: Draw) -> list[list[Step]]:
    """Return programs with a call that breaks, one that does not, and random ones."""
    whole: list[Step] = [{"do": "compute"}, {"do": "call", "body": [{"do": "size_if"}]}, {"do": "compute"}]
    broken: list[Step] = [{"do": "compute"}, {"do": "call", "body": [{"do": "log"}, {"do": "compute"}]}]
    return [whole, broken, *(random_steps(draw, n, calls=True) for n in (3, 4, 5, 6, 7))]


def with_loops(draw: Draw) -> list[list[Step]]:
    """Return programs with loops, some of which break, beside calls."""
    times = draw.integer(2, 4)
    broken: Step = {"do": "repeat", "times": times, "body": [{"do": "compute"}, {"do": "print"}]}
    call: Step = {"do": "call", "body": [{"do": "compute"}, {"do": "log"}, {"do": "item"}]}
    some = [random_steps(draw, n, calls=True, loops=True) for n in (3, 4, 5, 6, 7, 8)]
    return [[{"do": "compute"}, broken], [call, broken, {"do": "compute"}], *some]


def long(draw: Draw) -> list[list[Step]]:
    """Return longer programs of all kinds of steps except loops."""
    found = [random_steps(draw, draw.integer(10, 16), calls=True) for _ in range(8)]
    return [*found, [{"do": "append"}], [{"do": "print"}], [s for s in found[0] if not breaks([s])]]


EXERCISE = Exercise(
    title="Predict the graphs of a program",
    kind=Kind.VALUE,
    entry_point="count_graphs",
    points=8,
    masked=(
        "course_lib.models",
        "course_lib.capture",
        "course_lib.backends",
        "torch._dynamo",
        "transformers",  # which needs torch._dynamo
    ),  # they would build the program, and capture it
    hints=(
        "Go through the steps once and keep the operators of the graph that is open.",
        "A break closes the open graph, unless it is empty; item and value_if put operators before and after it.",
        "For a call, ask first whether its body breaks; if so, the answer for the body stands in the middle of yours.",
    ),
    checks=(
        Check("the number of graphs of straight programs", "straight programs", 1.5, predicts("graphs", _straight)),
        Check("the size of each graph of straight programs", "straight programs", 1, predicts("sizes", _straight)),
        Check("the number of graphs where functions are called", "calls", 1, predicts("graphs", _with_calls)),
        Check("the number of graphs where loops run", "loops", 1, predicts("graphs", with_loops)),
    ),
)
