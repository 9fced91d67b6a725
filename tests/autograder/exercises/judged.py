"""Grade one answer, to see what it is told: the reference solution with a mistake in it, or any text."""

from collections.abc import Collection
from dataclasses import replace

from autograder.exercises import find
from autograder.exercises.hidden.answer_files import edited
from autograder.exercises.quality.controls import controls
from autograder.host.exercise import REFERENCE
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import open_sandbox


def known_answer(exercise_id: str, control: str) -> str:
    """Return the text of a control, by its name."""
    (answer,) = [each.answer for each in controls(exercise_id) if each.name == control]
    return answer


def reference(exercise_id: str, *changes: tuple[str, str]) -> str:
    """Return the reference solution, with some of its text replaced as `edited` does it."""
    text = known_answer(exercise_id, REFERENCE)
    return edited(text, *changes) if changes else text


def judged(
    exercise_id: str, answer: str, *, hidden: bool = True, seed: int = 11, only: Collection[str] = ()
) -> ExerciseRecord:
    """Return the record of `answer`, with the checks whose names are in `only` where there are any."""
    exercise = find(exercise_id, hidden=hidden)
    if only:
        exercise = replace(exercise, checks=tuple(check for check in exercise.checks if check.name in only))
        assert len(exercise.checks) == len(only), f"{exercise_id} has not all of the checks {', '.join(only)}"
    parts = graded_parts(exercise, {exercise_id: answer})
    return judge(exercise, parts, sandbox=open_sandbox(), seed=seed)


def said(exercise_id: str, *changes: tuple[str, str], hidden: bool = True, seed: int = 11) -> str:
    """Return all that is said of the reference solution with some of its text replaced; it loses points by that."""
    record = judged(exercise_id, reference(exercise_id, *changes), hidden=hidden, seed=seed)
    assert record.points < record.max_points
    return "\n".join(check.message for check in record.checks)


def messages(record: ExerciseRecord) -> dict[str, str]:
    """Return what each check said, by its name."""
    return {check.name: check.message for check in record.checks if check.message}
