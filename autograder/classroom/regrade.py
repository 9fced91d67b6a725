"""`autograder regrade EXERCISE [STUDENT]`: show whose marks a changed exercise changes; with `--yes`, enter them.

Hand-ins whose record is of an older version of the exercise are graded again, each on its own seed, and only this
exercise. A table says who changes, by how much and why. With `--yes` the new records go into the journal, then marks,
feedback and report follow as with `autograder batch`. What a person entered in the gradebook stays.

It can be killed and run again at any time: what was graded for the table is kept in work/regrade.jsonl.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from autograder.classroom.batch import Engine, Journal, LocalEngine, is_final, secret_seed, stage
from autograder.classroom.batch_command import going_on, grade_and_tell
from autograder.classroom.exercise_versions import EXERCISE, changes, version_of
from autograder.classroom.hand_in import HandedIn, graded_exercise, handed_in
from autograder.classroom.sandbox_options import add_sandbox, open_chosen
from autograder.classroom.status import DONE, UsageError
from autograder.exercises import find, of_assignment
from autograder.exercises.answer_cells import CHECK
from autograder.host.records import GRADER_VERSION, WITHOUT_MARK, ExerciseRecord, SandboxRecord, SubmissionRecord
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import marks, number
from autograder.host.sandbox import Sandbox

if TYPE_CHECKING:
    from autograder.classroom.nbgrader.course import Course

FILE = "regrade.jsonl"
MOST_CHECKS = 3  # that a line of the table names


@dataclass(frozen=True)
class Part(HandedIn):
    """A hand-in of which only some exercises are graded."""

    only: tuple[str, ...] = ()

    def grade(self, *, sandbox: Sandbox, seed: int) -> SubmissionRecord:
        """Grade these exercises; what cannot be read gets the same record as in a whole grading."""
        if not self.answers:
            whole = super().grade(sandbox=sandbox, seed=seed)
            return replace(whole, exercises=tuple(e for e in whole.exercises if e.id in self.only))
        own = self.own_seed(seed)
        graded = (
            replace(graded_exercise(find(name, hidden=True), self.answers, sandbox, own), version=version_of(name))
            for name in self.only
        )
        place = SandboxRecord(sandbox.level, tuple(sandbox.notes))
        return SubmissionRecord(self.assignment, self.student, self.sha256, place, tuple(graded))

    def is_in(self, record: SubmissionRecord | None) -> bool:
        """Return whether `record` has all these exercises in their present version."""
        there = {e.id: e for e in record.exercises} if record else {}
        return all(name in there and not changes(there[name]) for name in self.only)


@dataclass(frozen=True)
class Change:
    """One exercise of one hand-in before and after; without `before` it was not there."""

    student: str
    before: ExerciseRecord | None
    after: ExerciseRecord
    by_person: float | None  # the points that a person gave for it in the gradebook

    @property
    def points(self) -> float:
        """Return by how many points the mark changes."""
        if self.after.status in WITHOUT_MARK:
            return 0.0
        return round(self.after.points - (self.before.points if self.before else 0.0), 6)

    @property
    def changes_the_mark(self) -> bool:
        """Return whether the mark or its maximum changes, or is not known."""
        if self.before is None or self.after.status in WITHOUT_MARK:
            return True
        return bool(self.points) or self.before.max_points != self.after.max_points

    @property
    def why(self) -> str:
        """Return what the exercise was changed in, and the checks that end in another way."""
        if self.after.status in WITHOUT_MARK:
            return one_line(self.after.message, limit=200)
        then = self.before.version if self.before else {}
        parts = [
            "its code" if part == EXERCISE else f"{part} {then.get(part, '?')} → {now}"
            for part, now in self.after.version.items()
            if then.get(part) != now
        ]
        statuses = {check.name: check.status for check in self.before.checks} if self.before else {}
        checks = [
            f"{one_line(check.name, limit=40)}: {statuses[check.name]} → {check.status}"
            for check in self.after.checks
            if statuses.get(check.name, check.status) != check.status
        ]
        person = [] if self.by_person is None else [f"a person's {number(self.by_person)} stays"]
        return "; ".join([*parts, *checks[:MOST_CHECKS], *person])


def add_regrade(commands: Any) -> None:
    """Add the command to the command line's `commands`."""
    style = argparse.RawDescriptionHelpFormatter
    regrade = commands.add_parser(
        "regrade", help="what a changed exercise changes in marks", description=__doc__, formatter_class=style
    )
    regrade.add_argument("exercise", metavar="EXERCISE", help="its id, or a notebook's name for all its exercises")
    regrade.add_argument("student", nargs="?", default="", metavar="STUDENT", help="by default everybody")
    regrade.add_argument("--yes", action="store_true", help="enter the new marks, and make feedback and report")
    add_sandbox(regrade)
    regrade.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course
    from autograder.classroom.nbgrader.release import sum_problems

    course = open_course()
    assignment, exercises = _chosen(course, options.exercise)
    for problem in (text for name in exercises for text in sum_problems(find(name, hidden=True))):
        raise UsageError(f"{problem} Change one of them.")
    with going_on():
        engine = LocalEngine(open_chosen(options))
        changed = regrade(course, assignment, exercises, engine=engine, student=options.student, write=options.yes)
        print("\n".join([table(changed), *released_otherwise(course, assignment, exercises)]))
        if options.yes:
            return grade_and_tell(course, [assignment], engine)
    if changed:
        again = " ".join(filter(None, ["autograder regrade", options.exercise, options.student, "--yes"]))
        print(f"Nothing is entered yet. This enters it: {again}")
    return DONE


def _chosen(course: "Course", name: str) -> tuple[str, tuple[str, ...]]:
    """Return the notebook and the exercises that `name` names."""
    if name in course.assignments:
        return name, of_assignment(name)
    exercise = find(name, hidden=True)
    for assignment in course.assignments:
        if exercise.id in of_assignment(assignment):
            return assignment, (exercise.id,)
    raise UsageError(f"no notebook of this course has the exercise {name}.")


def regrade(
    course: "Course",
    assignment: str,
    exercises: Sequence[str],
    *,
    engine: Engine,
    student: str = "",
    write: bool = False,
) -> list[Change]:
    """Grade the exercises again where their records are older; with `write`, put the new records into the journal."""
    hand_ins = [
        one for one in handed_in(course.submitted, [assignment], course.quarantine) if student in ("", one.student)
    ]
    if not hand_ins:
        raise UsageError(f"{f'{student} has not' if student else 'no student has'} handed in {assignment}.")
    with Journal(course.journal) as journal, Journal(course.journal.with_name(FILE)) as preview:
        records = {one.key: record for one in hand_ins if (record := journal.get(one.key)) is not None}
        parts = [part for one in hand_ins if one.key in records for part in _part(one, records[one.key], exercises)]
        done = _graded(parts, preview, engine, secret_seed(course.seed_file))
        changed = [change for part in parts for change in _changes(course, part, records[part.key], done[part.key])]
        for part in parts if write else ():
            if is_final(done[part.key]):
                journal.append(_merged(records[part.key], done[part.key]))
    return changed


def _part(one: HandedIn, record: SubmissionRecord, exercises: Sequence[str]) -> Iterator[Part]:
    """Yield the part of a hand-in whose record is of an older version, if there is one."""
    there = {e.id: e for e in record.exercises}
    older = tuple(name for name in exercises if name not in there or changes(there[name]))
    if older:
        yield Part(**{field.name: getattr(one, field.name) for field in fields(HandedIn)}, only=older)


def _graded(
    parts: Sequence[Part], preview: Journal, engine: Engine, seed: int
) -> Mapping[tuple[str, str, str], SubmissionRecord]:
    """Return the record of each part, from an earlier table or graded now."""
    done = {part.key: record for part in parts if part.is_in(record := preview.get(part.key)) and record is not None}
    missing = [part for part in parts if part.key not in done]
    with stage("Grade again", len(missing)) as advance, closing(engine.grade(missing, seed=seed)) as graded:
        for hand_in, record in graded:
            if is_final(record):
                preview.append(record)
            done[hand_in.key] = record
            advance(f"{one_line(record.student)}: {marks(record.points, record.max_points)}")
    return done


def _merged(old: SubmissionRecord, new: SubmissionRecord) -> SubmissionRecord:
    """Return the old record with the exercises that were graded again in place of the older ones."""
    found = {e.id: e for e in (*old.exercises, *new.exercises)}
    return replace(old, exercises=tuple(found[name] for name in sorted(found)), grader_version=GRADER_VERSION)


def _changes(course: "Course", part: Part, old: SubmissionRecord, new: SubmissionRecord) -> Iterator[Change]:
    before = {e.id: e for e in old.exercises}
    for exercise in new.exercises:
        if exercise.id in part.only:
            given = _by_person(course, part, exercise.id)
            yield Change(part.student, before.get(exercise.id), exercise, given)


def _by_person(course: "Course", part: Part, exercise: str) -> float | None:
    """Return the points that a person gave for an exercise's checks in the gradebook, or None."""
    from nbgrader.api import MissingEntry

    with course.gradebook() as gradebook:
        try:
            grade = gradebook.find_grade(f"{exercise}{CHECK}", part.assignment, part.assignment, part.student)
        except MissingEntry:
            return None
        given: float | None = grade.manual_score
        return given


def released_otherwise(course: "Course", assignment: str, exercises: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each exercise whose points in the release are others: marks are shares of those."""
    with course.gradebook() as gradebook:
        cells = {cell.name: cell.max_score for cell in gradebook.find_notebook(assignment, assignment).grade_cells}
    for name in set(exercises) - set(course.rules().dropped):
        points, released = find(name, hidden=True).points, cells.get(f"{name}{CHECK}", 0.0)
        if released != points:
            yield (
                f"The released notebook gives {name} {number(released)} points, and it has {number(points)} now. Marks "
                f"stay shares of {number(released)} until you run autograder open {assignment}, then autograder batch."
            )


def table(changed: Sequence[Change]) -> str:
    """Return who changes, by how much and why, as text, and how many do not change."""
    rows = [
        (
            one_line(one.student, limit=28),
            one.after.id,
            marks(one.before.points, one.before.max_points) if one.before else "–",
            "not graded" if one.after.status in WITHOUT_MARK else marks(one.after.points, one.after.max_points),
            f"{one.points:+g}",
            one.why,
        )
        for one in changed
        if one.changes_the_mark
    ]
    if not changed:
        return "Nothing to grade again: all records are of the present version."
    same = len(changed) - len(rows)
    heads = ("student", "exercise", "before", "after", "change", "why")
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads) - 1)]
    lines = []
    for row in (heads, *rows) if rows else ():
        cells = (f"{text:<{width}}" for text, width in zip(row, widths, strict=False))
        lines.append("  ".join([*cells, row[-1]]))
    return "\n".join([*lines, f"{len(rows)} of {len(changed)} marks change, {same} stay."])
