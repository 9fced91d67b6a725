"""`autograder explain`: grade a disputed exercise again on its own inputs, and show the case that cost points.

The seed of the hand-in follows from the course's secret seed, so the inputs are those of the first grading. Verdict and
record must agree; exit status 1 says that they do not.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch import secret_seed
from autograder.classroom.batch.journal import find_record
from autograder.classroom.disputes.case_text import case_text, comment
from autograder.classroom.disputes.heard_grading import HeardGrading, disputed, grade_and_hear
from autograder.classroom.exercise_versions import changes
from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DIFFERENT, DONE, CommandError, UsageError
from autograder.exercises import find
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE, Exercise
from autograder.host.records import CheckRecord, ExerciseRecord, SubmissionRecord

if TYPE_CHECKING:
    from autograder.classroom.nbgrader.course import Course


def add_explain(commands: Any) -> None:
    """Add the command to the command line's `commands`."""
    style = argparse.RawDescriptionHelpFormatter
    told = "grade a disputed exercise again on its own inputs, and show the case"
    explain = commands.add_parser("explain", help=told, description=__doc__, formatter_class=style)
    explain.add_argument("student", metavar="STUDENT")
    explain.add_argument("notebook", metavar="NOTEBOOK", help="such as 04_fx_capture")
    explain.add_argument("exercise", nargs="?", metavar="EXERCISE", help="by default all that lost points")
    explain.add_argument(
        "check", nargs="?", metavar="CHECK", help="its name or part of it; by default each that failed"
    )
    told = "write the case of the one check that is named to FILE, with nothing else"
    explain.add_argument("--for-student", type=Path, metavar="FILE.py", help=told)
    add_sandbox(explain)
    explain.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course

    course = open_course()
    (notebook,) = course.chosen([options.notebook])
    hand_in, record = _graded_hand_in(course, options.student, notebook)
    seed, sandbox = hand_in.own_seed(secret_seed(course.seed_file)), open_chosen(options)
    agree = True
    for before in _chosen(record, options.exercise):
        exercise = find(before.id, hidden=True)
        again = grade_and_hear(exercise, hand_in.answers, sandbox=sandbox, seed=seed)
        right = grade_and_hear(exercise, _reference_answers(exercise), sandbox=sandbox, seed=seed)
        dispute = Dispute(exercise, before, again, right)
        agree = agree and not dispute.differences
        checks = dispute.checks(options.check)
        print(*dispute.summary(), *(part for check in checks for part in dispute.part(check)), sep="\n", end="\n\n")
        if options.for_student is not None:
            options.for_student.write_text(dispute.for_student(_only(checks, exercise)), encoding="utf-8")
            print(f"{options.for_student} holds this case and nothing else.")
    return DONE if agree else DIFFERENT


def _graded_hand_in(course: "Course", student: str, notebook: str) -> tuple[HandedIn, SubmissionRecord]:
    """Return a hand-in and its record in the journal; raises `UsageError` or `CommandError` if one is missing."""
    path = course.submitted / student / notebook / f"{notebook}.ipynb"
    if not path.parent.is_dir() or Path(student).name != student:
        raise UsageError(f"{student} has handed in no {notebook}: there is no folder {path.parent}.")
    hand_in = read_hand_in(notebook, student, path, course.quarantine)
    if why := hand_in.fault or hand_in.undecided or hand_in.reason:
        raise CommandError(f"No code of this hand-in was run. {why}")
    record = find_record(course.journal, hand_in.key) if course.seed_file.is_file() else None
    if record is None:
        raise UsageError(
            f"What {student} handed in last is not graded yet; `autograder batch --assignment {notebook}` does it."
        )
    return hand_in, record


def _chosen(record: SubmissionRecord, exercise: str | None) -> list[ExerciseRecord]:
    ids = [each.id for each in record.exercises]
    if exercise is not None and exercise not in ids:
        raise UsageError(f"{record.assignment} has no exercise {exercise!r}; it has {', '.join(ids)}.")
    lost = [each for each in record.exercises if each.points < each.max_points]
    return [each for each in record.exercises if each.id == exercise] if exercise else lost


def _reference_answers(exercise: Exercise) -> dict[str, str]:
    """Return the reference solutions of an exercise and of those that it needs."""
    parts = {each: hidden_part(each) for each in (*exercise.needs, exercise.id)}
    controls = {each: part.controls for each, part in parts.items() if part is not None}
    return {each: c.answer for each, some in controls.items() for c in some if c.name == REFERENCE}


def _only(checks: Sequence[CheckRecord], exercise: Exercise) -> CheckRecord:
    if len(checks) == 1:
        return checks[0]
    names = "; ".join(repr(check.name) for check in checks) or "none lost points"
    raise UsageError(f"--for-student shows one check of {exercise.id}; name one of: {names}.")


class Dispute:
    """One exercise of a hand-in: its record, the same grading again, and that of the reference solution."""

    def __init__(self, exercise: Exercise, before: ExerciseRecord, again: HeardGrading, right: HeardGrading) -> None:
        assert again.record is not None, "it was graded"
        self.exercise, self.before, self.now = exercise, before, again.record
        self._again, self._right = again, right
        self.differences = list(_differences(before, again.record))

    def checks(self, name: str | None) -> list[CheckRecord]:
        """Return the checks whose name holds `name`, or those that lost points; raises `UsageError` for no check."""
        if name is None:
            return [check for check in self.now.checks if check.points < check.max_points]
        exact = [check for check in self.now.checks if check.name == name]
        found = exact or [check for check in self.now.checks if name in check.name]
        if not found:
            names = "; ".join(repr(check.name) for check in self.now.checks)
            raise UsageError(f"{self.exercise.id} has no check {name!r}; it has {names}.")
        return found

    def summary(self) -> Iterator[str]:
        """Yield the lines on the whole exercise."""
        before, now = self.before, self.now
        yield comment(f"{self.exercise.id}: {before.points:g} of {before.max_points:g} points in the record")
        yield comment(f"graded again on the same inputs: {now.points:g} of {now.max_points:g} points")
        if not self.differences:
            yield comment("verdict and record agree")
        yield from (comment(f"VERDICT AND RECORD DIFFER: {each}") for each in self.differences)
        for part, (was, is_now) in changes(before).items():
            yield comment(f"since the record the {part} has changed, from {was or 'an unknown version'} to {is_now}")
        if now.message:
            yield comment(now.message)

    def part(self, check: CheckRecord) -> Iterator[str]:
        """Yield the text on one check."""
        who = "hidden" if check.hidden else "visible"
        yield ""
        yield comment(
            f"check {check.name!r} ({who}, {check.category}): {check.points:g} of {check.max_points:g} points"
        )
        if check.message:
            yield comment(check.message)
        if self._right.record is not None and check.name in {each.name for each in self._right.record.checks}:
            right = self._right.check(check.name)
            if right.points == right.max_points:
                yield comment("the reference solution passes this check on the same inputs")
            else:
                yield comment(f"THE REFERENCE SOLUTION FAILS IT TOO, so look at the check: {right.message}")
        pairs = disputed(self._again.heard.get(check.name, []), self._right.heard.get(check.name, []))
        if not pairs:
            yield comment("no request reached a worker in this check")
        for mine, reference in pairs:
            yield case_text(mine, reference, self.exercise.entry_point)

    def for_student(self, check: CheckRecord) -> str:
        """Return what the student may have: this check's case, its sentence, and nothing of another one."""
        told = "Paste this below your answer's cell: what your function was asked, what it gave, and what was expected."
        return "\n".join([comment(f"{self.exercise.id}. {told}"), *self.part(check)]) + "\n"


def _differences(before: ExerciseRecord, now: ExerciseRecord) -> Iterator[str]:
    if (before.status, before.points, before.max_points) != (now.status, now.points, now.max_points):
        yield (
            f"{before.points:g} of {before.max_points:g} points, {before.status}, in the record; "
            f"{now.points:g} of {now.max_points:g} points, {now.status}, now"
        )
    earlier, later = ({check.name: check for check in each.checks} for each in (before, now))
    for name in [*earlier, *(name for name in later if name not in earlier)]:
        was, is_now = earlier.get(name), later.get(name)
        if was is None or is_now is None:
            yield f"the check {name!r} is {'new' if was is None else 'gone'}, so the exercise was changed since"
        elif (was.status, was.points, was.message) != (is_now.status, is_now.points, is_now.message):
            yield f"check {name!r}: {was.status}, {was.points:g} points ({was.message}); now {is_now.status}, "
            yield f"    {is_now.points:g} points ({is_now.message})"
