"""Hints in three steps: what to look at, how to start, and almost the line; stored in the exercise's visible part."""

from dataclasses import dataclass

from autograder.exercises import UnknownExerciseError as NotAnExerciseError
from autograder.exercises import find
from autograder.host.report.safe_text import coded, element
from autograder.practice.errors import UnknownExerciseError
from autograder.practice.history import hints_taken, remember_hint

STEPS = ("What to look at", "How to start", "Nearly the line")
LEFT = (
    'Try again first. `hint("{id}")` shows the next of three steps.',
    'Try again first. `hint("{id}")` shows the last of three steps.',
    "That was the last step. After that it helps to ask somebody, and to show them what you tried.",
)
NONE = "This exercise has no hints: its text says everything, and what `check` shows says the rest."
_BOX = "border-left:4px solid rgba(40,110,220,.75);padding:2px 12px;margin:4px 0;max-width:56em;line-height:1.5"


@dataclass(frozen=True)
class Hint:
    """The steps shown so far, the newest last; displayed as HTML in a notebook and as text elsewhere."""

    exercise: str
    steps: tuple[str, ...]

    @property
    def next(self) -> str:
        """Return one sentence on what the next call shows."""
        return LEFT[len(self.steps) - 1].format(id=self.exercise) if self.steps else NONE

    def __str__(self) -> str:
        lines = [f"{title}: {step}" for title, step in zip(STEPS, self.steps, strict=False)]
        return "\n".join([*lines, self.next])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = zip(STEPS, self.steps, strict=False)
        steps = [element("p", element("strong", f"{title}. "), coded(step)) for title, step in shown]
        return element("div", *steps, element("p", coded(self.next), style="opacity:.75"), style=_BOX)


def hint(exercise_id: str) -> Hint:
    """Show the next hint of an exercise; the first says what to look at, the last gives almost the line of code.

        >>> hint("05_bias_silu_pass")

    The practice history stores the last step; `progress` shows it, and it costs nothing. Raise
    `UnknownExerciseError` for an id that does not exist.
    """
    try:
        hints = find(exercise_id).hints
    except NotAnExerciseError as error:
        raise UnknownExerciseError(str(error)) from None
    step = min(hints_taken().get(exercise_id, 0) + 1, len(hints))
    if step:
        remember_hint(exercise_id, step)
    return Hint(exercise_id, hints[: max(step, 0)])
