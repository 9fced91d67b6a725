"""Grade one answer, to see what it is told: the reference solution with a mistake in it, or any text."""

from collections.abc import Collection
from dataclasses import replace

from autograder.exercises import find
from autograder.exercises.hidden.answer_files import edited
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE
from autograder.host.judge import judge
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import open_sandbox


def reference(exercise_id: str, *changes: tuple[str, str]) -> str:
    """Return the reference solution, with some of its text replaced as `edited` does it."""
    part = hidden_part(exercise_id)
    assert part is not None
    text = next(control.answer for control in part.controls if control.name == REFERENCE)
    return edited(text, *changes) if changes else text


def judged(
    exercise_id: str, answer: str, *, hidden: bool = True, seed: int = 11, only: Collection[str] = ()
) -> ExerciseRecord:
    """The record of ``answer``; of the checks whose names are in ``only``, where there are any."""
    exercise = find(exercise_id, hidden=hidden)
    if only:
        exercise = replace(exercise, checks=tuple(check for check in exercise.checks if check.name in only))
        assert len(exercise.checks) == len(only), f"{exercise_id} has not all of the checks {', '.join(only)}"
    parts = {"setup": exercise.setup, f"answer {exercise_id}": answer}
    return judge(exercise, parts, sandbox=open_sandbox(), seed=seed)


def messages(record: ExerciseRecord) -> dict[str, str]:
    """What each check said, by its name."""
    return {check.name: check.message for check in record.checks if check.message}
