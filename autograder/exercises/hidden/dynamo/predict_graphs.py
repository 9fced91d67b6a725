"""Hidden checks and controls of exercise 07.1."""

from collections.abc import Sequence

from autograder.exercises.dynamo.predict_graphs import BREAKING, Step, breaks, long, predicts, with_loops
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

BEFORE = {"item": 1, "value_if": 2}  # number of the step's own operators at the end of the graph before the break


AFTER = {"item": 1, "value_if": 1}  # number of its operators at the start of the next graph


INSIDE = {"compute": 1, "size_if": 1}


def graph_sizes(steps: Sequence[Step]) -> list[int]:
    """Return how many operators each graph holds, in the order in which the graphs first run.

    After a break in a loop, Python runs everything since the last break and everything after it. Only functions called
    there are captured, each one separately.
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


def known(steps: list[Step], part: str) -> Known:
    """Return the number of graphs or their sizes, and the known wrong numbers."""
    sizes = graph_sizes(steps)
    if part == "sizes":
        return {"right": sizes, "wrong": []}
    return {"right": len(sizes), "wrong": wrong_values(steps, MISCONCEPTIONS)}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("long programs", "long programs", 2, predicts("sizes", long)),
        Check("the size of each graph of programs with loops", "loops", 1.5, predicts("sizes", with_loops)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control("one graph, always", "def count_graphs(steps):\n    return {'graphs': 1, 'sizes': [len(steps)]}\n", 0),
        ANSWERS.edited("no loops", 5.5, ("if do == 'repeat' and", "if do == 'jump' and")),
    ),
)
