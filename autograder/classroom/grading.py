"""Grade a submission: each exercise of its notebook, one after the other, into one record."""

from collections.abc import Callable, Mapping

from autograder.exercises import find, of_assignment
from autograder.host.grading import grade_exercise, new_seed
from autograder.host.records import ExerciseRecord, SandboxRecord, SubmissionRecord
from autograder.host.sandbox import Sandbox


def grade_answers(
    assignment: str,
    student: str,
    answers: Mapping[str, str],
    *,
    submission_sha256: str,
    sandbox: Sandbox,
    seed: int | None = None,
    hidden: bool = True,
    notes: tuple[str, ...] = (),
    on_exercise: Callable[[ExerciseRecord], None] | None = None,
) -> SubmissionRecord:
    """Grade the answers of one notebook. ``on_exercise`` hears of each exercise when it is done."""
    seed = new_seed() if seed is None else seed
    exercises = []
    for exercise_id in of_assignment(assignment):
        record = grade_exercise(find(exercise_id, hidden=hidden), answers, sandbox=sandbox, seed=seed)
        exercises.append(record)
        if on_exercise is not None:
            on_exercise(record)
    return SubmissionRecord(
        assignment=assignment,
        student=student,
        submission_sha256=submission_sha256,
        sandbox=SandboxRecord(sandbox.level, tuple(sandbox.notes)),
        exercises=tuple(exercises),
        notes=notes,
    )
