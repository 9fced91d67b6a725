"""Exercise 07.1: predict how many graphs Dynamo makes of a program, and what is in each."""

from collections.abc import Callable
from typing import Any

from autograder.exercises.lessons import exercise_id
from autograder.exercises.programs.steps import BREAKING, Step, breaks, graph_sizes, random_steps
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Programs = Callable[[Draw], list[list[Step]]]


def _empty_graphs_too(steps: list[Step]) -> int:
    return 1 + sum(s["do"] in BREAKING for s in steps) if not any("body" in s for s in steps) else -1


def _every_step_breaks(steps: list[Step]) -> int:
    as_breaks: dict[str, list[Step]] = {"append": [{"do": "print"}], "size_if": [{"do": "print"}, {"do": "compute"}]}
    return len(graph_sizes([part for s in steps for part in as_breaks.get(s["do"], [s])]))


def _calls_are_inlined(steps: list[Step]) -> int:
    flat = [inner for s in steps for inner in (s["body"] if s["do"] == "call" else [s])]
    return len(graph_sizes(flat))


def _loops_are_unrolled(steps: list[Step]) -> int:
    flat = [inner for s in steps for inner in (s["body"] * s["times"] if s["do"] == "repeat" else [s])]
    return len(graph_sizes(flat))


MISCONCEPTIONS = (
    Misconception(
        _empty_graphs_too,
        "One graph more than there are breaks was counted; between two breaks without an operator there is no graph.",
    ),
    Misconception(
        _every_step_breaks,
        "Writing into a list and branching on a size were counted as breaks; Dynamo follows both, and guards the size.",
    ),
    Misconception(
        _calls_are_inlined,
        "A call was read as if it stood in line; a function that breaks is left to Python, and gets graphs of its own.",
    ),
    Misconception(
        _loops_are_unrolled,
        "A loop with a break was unrolled; Dynamo leaves it to Python, with all since the last break and all after it.",
    ),
)


def predicts(part: str, programs: Programs) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for every program; `part` is "graphs" or "sizes"."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for steps in programs(draw):
            found, sizes = answer.ask(steps), graph_sizes(steps)
            expected: Any = len(sizes) if part == "graphs" else sizes
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(
                    f"count_graphs returned {_short(found)}; expected a dict with the keys graphs and sizes."
                )
            if type(found[part]) is not type(expected) or found[part] != expected:
                why = explained_value(found[part], steps, MISCONCEPTIONS) if part == "graphs" else ""
                raise CheckFailedError(
                    f"For {written(steps)} {part} is {_short(found[part])}; expected {_short(expected)}. {why}".strip()
                )

    return run


def written(steps: list[Step]) -> str:
    """Return the steps in one line."""
    parts = []
    for step in steps:
        inner = f"({written(step['body'])})" if "body" in step else ""
        parts.append(step["do"] + (f" {step['times']}x" if "times" in step else "") + inner)
    return ", ".join(parts)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


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
    """Return longer programs of everything but loops."""
    found = [random_steps(draw, draw.integer(10, 16), calls=True) for _ in range(8)]
    return [*found, [{"do": "append"}], [{"do": "print"}], [s for s in found[0] if not breaks([s])]]


EXERCISE = Exercise(
    id=exercise_id(__name__),
    title="Predict the graphs of a program",
    kind=Kind.VALUE,
    entry_point="count_graphs",
    points=8,
    masked=("course_lib.models", "course_lib.capture"),  # they would make the program, and capture it
    hints=(
        "Go through the steps once and keep the operators of the graph that is open.",
        "A break closes the open graph, unless it is empty; item and value_if put operators before and after it.",
        "For a call, ask first whether its body breaks; if so, the answer for the body stands in the middle of yours.",
    ),
    checks=(
        Check("the number of graphs of straight programs", "straight programs", 1.6, predicts("graphs", _straight)),
        Check("the size of each graph of straight programs", "straight programs", 1.6, predicts("sizes", _straight)),
        Check("the number of graphs where functions are called", "calls", 1.6, predicts("graphs", _with_calls)),
    ),
)
