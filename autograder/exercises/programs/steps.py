"""Programs as lists of steps, drawn at random, and what Dynamo makes of them.

The host's own rules, held against Dynamo itself by a test. For the steps see `course_lib.models.steps`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.host.draw import Draw

Step = Mapping[str, Any]

WHOLE = ("compute", "size_if", "append")
BREAKING = ("print", "log", "item", "value_if")
BEFORE = {"item": 1, "value_if": 2}  # operators of the step itself that end the graph before the break
AFTER = {"item": 1, "value_if": 1}  # those that begin the next one
INSIDE = {"compute": 1, "size_if": 1}


def graph_sizes(steps: Sequence[Step]) -> list[int]:
    """Return how many operators each graph holds, in the order in which the graphs first run.

    A break in a loop leaves everything since the last break, and all that follows, to Python; only functions that are
    called there are captured, each by itself.
    """
    sizes: list[int] = []
    pending, since = 0, 0
    for number, step in enumerate(steps):
        if step["do"] == "repeat" and breaks(step["body"]):
            left = [s for s in steps[since:] if s["do"] == "call"]
            return sizes + [size for call in left for size in graph_sizes(call["body"])]
        if step["do"] in BREAKING or breaks([step]):
            pending += BEFORE.get(step["do"], 0)
            sizes += [pending] if pending else []
            sizes += graph_sizes(step.get("body", []))
            pending, since = AFTER.get(step["do"], 0), number + 1
        elif "body" in step:
            pending += step.get("times", 1) * sum(graph_sizes(step["body"]))
        else:
            pending += INSIDE.get(step["do"], 0)
    return sizes + ([pending] if pending else [])


def breaks(steps: Sequence[Step]) -> bool:
    """Return whether Dynamo cannot capture the steps as one graph."""
    return any(s["do"] in BREAKING or ("body" in s and breaks(s["body"])) for s in steps)


def random_steps(draw: Draw, count: int, *, calls: bool = False, loops: bool = False) -> list[Step]:
    """Return `count` random steps, with calls and loops among them where they are asked for."""
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
