"""Hidden checks and controls of exercise 03.3."""

from __future__ import annotations

from collections.abc import Callable

from autograder.exercises.torchscript import expose_a_trace as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import Trial, disproves


def _larger(name: str) -> Callable[[Draw], list[Trial]]:
    return lambda draw: [visible.trial(name, draw.integer(5, 60))]


def _below(draw: Draw) -> list[Trial]:
    """A limit of one: sums of small matrices lie above it at once."""
    return [visible.trial(name, 1) for name in ("normalise", "halve")]


REFERENCE = """
def expose(question):
    limit = float(question["limit"])
    if question["program"] == "average_even":
        rows = question["limit"]
        return torch.ones(rows, 3), torch.ones(rows + 1, 3)
    return torch.full((2, 3), limit / 100), torch.full((2, 3), limit * 3)
"""
SAME = "def expose(question):\n    return torch.ones(2, 3), torch.ones(2, 3)\n"
SAME_SIDE = REFERENCE.replace("limit / 100", "limit * 3")
THE_OTHER_WAY = """
def expose(question):
    limit = float(question["limit"])
    if question["program"] == "average_even":
        rows = question["limit"]
        return torch.ones(rows + 1, 3), torch.ones(rows, 3)
    return torch.full((2, 3), limit * 3), torch.full((2, 3), limit / 100)
"""
FIXED = REFERENCE.replace('float(question["limit"])', "3.0").replace('rows = question["limit"]', "rows = 3")
WRONG_RANK = REFERENCE.replace("torch.full((2, 3), limit * 3)", "torch.full((6,), limit * 3)")

HIDDEN = HiddenPart(
    checks=(
        *(Check(f"`{name}` with larger limits", "limits", 0.8, disproves(_larger(name))) for name in visible.TRAPS),
        Check("a limit of one", "limits", 0.8, disproves(_below)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("the other way round", THE_OTHER_WAY, 8),
        Control("twice the same", SAME, 0),
        Control("both on one side", SAME_SIDE, 3, below=True),
        Control("one limit for all", FIXED, 8, below=True),
        Control("another rank", WRONG_RANK, 3, below=True),
    ),
    equivalent={
        f"line {line}: {change}": "counterexamples are many: another size or magnitude is one, too"
        for line, change in (
            (6, "1 -> 2"),
            (6, "3 -> 4"),
            (6, "rows + 1 -> rows - 1"),
            (7, "100 -> 101"),
            (7, "2 -> 3"),
            (7, "3 -> 4"),
        )
    },
)
