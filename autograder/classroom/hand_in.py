"""Read each submitted file once, and grade each hand-in, readable or not, into one record."""

import hashlib
import os
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from autograder.classroom.exercise_versions import version_of
from autograder.classroom.notes import notes_for
from autograder.classroom.submission import SubmissionError, parse_submission, read_bytes
from autograder.exercises import find, of_assignment
from autograder.exercises.cell_text import only_in_a_notebook
from autograder.host.artifacts.copied_functions import copied_functions
from autograder.host.exercise import Exercise
from autograder.host.grading import grade_exercise, new_seed
from autograder.host.judge import not_found, not_graded
from autograder.host.records import (
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)
from autograder.host.sandbox import Sandbox

Key = tuple[str, str, str]
FRAMES = -4  # the last calls of a traceback; one without end would bury what is said about the others
SEEDS = "0.1.0"  # another text would draw other inputs for every hand-in, so that no mark could be compared
NOT_ENTERED = 0  # used as the sandbox's level if no student code ran


@dataclass(frozen=True)
class HandedIn:
    """The content of one notebook, `submitted/STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb`, when it was read."""

    assignment: str
    student: str
    path: Path
    sha256: str  # of the file's bytes, or of `reason` if they cannot be read
    answers: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)  # by exercise id
    reason: str = ""  # why it is not a notebook; empty if it is one
    fault: str = ""  # the grader's error while reading it; then it is not graded
    undecided: str = ""  # why a person must say which cells are meant; then it is not graded
    notes: tuple[str, ...] = ()  # on corrections before reading, e.g. of the notebook's name
    repairs: tuple[str, ...] = ()  # notes on repairs that were needed to find the answers
    notebook: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> Key:
        """Return the key under which the journal has this hand-in's records."""
        return (self.assignment, self.student, self.sha256)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the notes of this hand-in's record, if it is graded."""
        return (*self.notes, self.reason) if self.reason else (*self.notes, *self.repairs)

    def without_notebook(self) -> "HandedIn":
        """Return a copy without the parsed notebook, which is too large to keep for a whole class."""
        return replace(self, notebook=None)

    def grade(self, *, sandbox: Sandbox, seed: int) -> SubmissionRecord:
        """Grade the hand-in; a notebook that cannot be read gets 0 points and a sentence with the reason."""
        record = self._record(sandbox, seed)
        return replace(record, exercises=tuple(replace(e, version=version_of(e.id)) for e in record.exercises))

    def _record(self, sandbox: Sandbox, seed: int) -> SubmissionRecord:
        if self.fault:
            return self.not_graded(self.fault)
        if self.undecided:
            outcome = partial(not_graded, status=ExerciseStatus.UNDECIDED)
            return self._same_for_all(outcome, self.undecided, SandboxRecord(NOT_ENTERED))
        if self.reason:
            return self._same_for_all(not_found, self.reason, SandboxRecord(sandbox.level, tuple(sandbox.notes)))
        return grade_answers(
            self.assignment,
            self.student,
            self.answers,
            submission_sha256=self.sha256,
            sandbox=sandbox,
            seed=self.own_seed(seed),
            notes=self.remarks,
        )

    def grade_again(self, record: SubmissionRecord, *, sandbox: Sandbox, seed: int) -> SubmissionRecord:
        """Return `record` with those exercises graded again whose answer was stopped, on equal inputs."""
        own = self.own_seed(seed)
        exercises = (
            replace(
                grade_exercise(find(each.id, hidden=True), self.answers, sandbox=sandbox, seed=own),
                version=version_of(each.id),
            )
            if each.was_disturbed
            else each
            for each in record.exercises
        )
        return replace(record, exercises=tuple(_with_copies(each, self.answers) for each in exercises))

    def own_seed(self, seed: int) -> int:
        """Return the seed of this hand-in; other students and changed hand-ins get other seeds and hidden cases."""
        digest = hashlib.sha256("\0".join([str(seed), *self.key, SEEDS]).encode("utf-8", "surrogateescape")).digest()
        return int.from_bytes(digest[:8], "little") >> 1

    def not_graded(self, sentence: str) -> SubmissionRecord:
        """Return the record of a failure of the grader: it changes no points, and the next run tries again."""
        return self._same_for_all(not_graded, sentence, SandboxRecord(NOT_ENTERED))

    def _same_for_all(
        self, outcome: Callable[[Exercise, str], ExerciseRecord], sentence: str, sandbox: SandboxRecord
    ) -> SubmissionRecord:
        exercises = (find(exercise_id, hidden=True) for exercise_id in of_assignment(self.assignment))
        return SubmissionRecord(
            assignment=self.assignment,
            student=self.student,
            submission_sha256=self.sha256,
            sandbox=sandbox,
            exercises=tuple(outcome(exercise, sentence) for exercise in exercises),
            notes=(*self.notes, sentence),
        )


def read_hand_in(assignment: str, student: str, path: Path, quarantine: Path | None = None) -> HandedIn:
    """Read, hash and parse the file at `path`, whatever its content, and read its notes in `quarantine`.

    An empty file means that nothing was handed in. An error of ours becomes the hand-in's `fault`.
    """
    try:
        return _read(assignment, student, path, quarantine)
    except Exception as error:  # one hand-in must not stop the class
        traceback.print_exc(limit=FRAMES)
        return unread(assignment, student, path, fault_of_ours(error))


def unread(assignment: str, student: str, path: Path, fault: str) -> HandedIn:
    """Return a hand-in that is not graded because of `fault`, which is no student's."""
    digest = hashlib.sha256(fault.encode("utf-8", "replace")).hexdigest()
    return HandedIn(assignment, student, path, digest, fault=fault)


def _read(assignment: str, student: str, path: Path, quarantine: Path | None) -> HandedIn:
    try:
        content, reason = read_bytes(path), ""
    except SubmissionError as error:
        content, reason = b"", str(error)
    sha256 = hashlib.sha256(reason.encode("utf-8", "replace") or content).hexdigest()
    notes = notes_for(path, quarantine, "" if reason else sha256) if quarantine else ()
    read = HandedIn(assignment, student, path, sha256, reason=reason, notes=notes)
    if reason:
        return read
    if not content.strip():
        return replace(read, reason=nothing_handed_in(path))
    try:
        submission = parse_submission(content, path.name)
    except SubmissionError as error:
        return replace(read, reason=str(error))
    if submission.undecided:
        return replace(read, undecided=submission.undecided, repairs=submission.notes)
    return replace(read, answers=submission.answers, repairs=submission.notes, notebook=submission.notebook)


def fault_of_ours(error: Exception) -> str:
    """Return the sentence about an error that no student is to blame for."""
    return f"A fault of the grader: {type(error).__name__}: {error}"


def nothing_handed_in(path: Path) -> str:
    """Return the sentence about a missing notebook."""
    return f"{path.name} was not handed in, or it is empty."


def folders_handed_in(submitted: Path, assignments: Iterable[str]) -> list[Path]:
    """Return the folders `submitted/STUDENT/ASSIGNMENT` of `assignments`, by assignment, then student."""
    students = sorted(submitted.iterdir()) if submitted.is_dir() else []
    folders = (student / assignment for assignment in sorted(assignments) for student in students)
    return [folder for folder in folders if os.path.isdir(folder)]  # noqa: PTH112  # which raises for no folder


def handed_in(submitted: Path, assignments: Iterable[str], quarantine: Path | None = None) -> list[HandedIn]:
    """Read all hand-ins of `assignments` in nbgrader's folder `submitted`; return them without the parsed notebooks."""
    return [
        read_hand_in(folder.name, folder.parent.name, folder / f"{folder.name}.ipynb", quarantine).without_notebook()
        for folder in folders_handed_in(submitted, assignments)
    ]


def grade_answers(
    assignment: str,
    student: str,
    answers: Mapping[str, str],
    *,
    submission_sha256: str,
    sandbox: Sandbox,
    seed: int | None = None,
    notes: tuple[str, ...] = (),
    show_speed: bool = False,
) -> SubmissionRecord:
    """Grade the answers of one notebook, one exercise after the other; `show_speed` as for one exercise."""
    seed = new_seed() if seed is None else seed
    exercises = tuple(
        graded_exercise(find(exercise_id, hidden=True), answers, sandbox, seed, show_speed=show_speed)
        for exercise_id in of_assignment(assignment)
    )
    return SubmissionRecord(
        assignment=assignment,
        student=student,
        submission_sha256=submission_sha256,
        sandbox=SandboxRecord(sandbox.level, tuple(sandbox.notes)),
        exercises=exercises,
        notes=notes,
    )


def graded_exercise(
    exercise: Exercise, answers: Mapping[str, str], sandbox: Sandbox, seed: int, *, show_speed: bool = False
) -> ExerciseRecord:
    """Grade one exercise; an error of ours is this exercise's only."""
    try:
        record = grade_exercise(exercise, answers, sandbox=sandbox, seed=seed, show_speed=show_speed)
        return _with_copies(_explained(record, answers.get(exercise.id, "")), answers)
    except Exception as error:  # the other exercises of the hand-in are graded
        traceback.print_exc(limit=FRAMES)
        return not_graded(exercise, fault_of_ours(error))


def _explained(record: ExerciseRecord, text: str) -> ExerciseRecord:
    """Return the record of an answer that raised, with the sentence that practice says if only a notebook runs it."""
    why = only_in_a_notebook(text) if record.status is ExerciseStatus.STUDENT_ERROR else ""
    if not why:
        return record
    checks = tuple(replace(c, message=why if c.message == record.message else c.message) for c in record.checks)
    return replace(record, message=why, checks=checks)


def _with_copies(record: ExerciseRecord, answers: Mapping[str, str]) -> ExerciseRecord:
    """Return the record with the functions of its answer that are copies; the points stay."""
    if record.status is ExerciseStatus.NOT_FOUND:
        return record
    exercise = find(record.id)
    places = (*exercise.masked, *exercise.ready_made)
    return replace(record, copies=copied_functions(answers.get(record.id, ""), places))
