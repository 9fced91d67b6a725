"""Hidden checks and controls of exercise 03.3."""

from collections.abc import Callable

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import expose_a_trace as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import Trial, disproves


def _larger(name: str) -> Callable[[Draw], list[Trial]]:
    return lambda draw: [visible.trial(name, visible.limit_of(name, draw, 5, 60))]


def _below(draw: Draw) -> list[Trial]:
    """Return trials with a limit of 1, which sums of small matrices exceed."""
    return [visible.trial(name, 1) for name in ("normalise", "halve")]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        *(Check(f"`{name}` with larger limits", "limits", 1, disproves(_larger(name))) for name in visible.TRAPS),
        Check("a limit of one", "limits", 0.5, disproves(_below)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited(
            "the other way round",
            8,
            ("torch.ones(limit, 3), torch.ones(limit + 1, 3)", "torch.ones(limit + 1, 3), torch.ones(limit, 3)"),
            ("limit / 100), torch.full((2, 3), limit * 3.0)", "limit * 3.0), torch.full((2, 3), limit / 100)"),
        ),
        Control("a list", f"{ANSWERS.text}\npair = expose\n\ndef expose(question):\n    return [*pair(question)]\n", 8),
        Control("twice the same", "def expose(question):\n    return torch.ones(2, 3), torch.ones(2, 3)\n", 0),
        ANSWERS.edited("both on one side", 3, ("limit / 100", "limit * 3.0"), below=True),
        ANSWERS.edited("one limit for all", 8, ("limit = question['limit']", "limit = 3"), below=True),
        ANSWERS.edited("another rank", 3, ("(2, 3), limit * 3.0", "(6,), limit * 3.0"), below=True),
    ),
    equivalent=dict.fromkeys(
        (
            "1 -> 2",
            "limit + 1 -> limit - 1",
            "return (torch.ones(limit, 3), torch.ones(limit + 1, 3)): 3 -> 4",
            "100 -> 101",
            "2 -> 3",
            "return (torch.full((2, 3), limit / 100), torch.full((2, 3), limit * 3.0)): 3 -> 4",
            "3.0 -> 4.0",
        ),
        "counterexamples are many: another size or magnitude is one, too",
    ),
)
