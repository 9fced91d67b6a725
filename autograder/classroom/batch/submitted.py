"""What students handed in, and how one hand-in becomes one record, readable or not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder.classroom.grading import grade_answers
from autograder.classroom.submission import Submission, SubmissionError, read_bytes, read_submission
from autograder.exercises import find, of_assignment
from autograder.host.exercise import Exercise
from autograder.host.judge import not_found, not_graded
from autograder.host.records import GRADER_VERSION, ExerciseRecord, SandboxRecord, SubmissionRecord
from autograder.host.sandbox import Sandbox

Key = tuple[str, str, str, str]
NOT_ENTERED = 0  # in place of a sandbox's level: nothing of the student's ran


@dataclass(frozen=True)
class HandedIn:
    """One notebook of one student: ``submitted/STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb``."""

    assignment: str
    student: str
    path: Path
    notes: tuple[str, ...] = ()  # what was set right before grading, e.g. a notebook that had another name

    @cached_property
    def sha256(self) -> str:
        """The hash of the file as it was handed in; of the reason, where the file cannot be read at all."""
        try:
            content = read_bytes(self.path)
        except SubmissionError as error:
            content = str(error).encode()
        return hashlib.sha256(content).hexdigest()

    @property
    def key(self) -> Key:
        """The key that this hand-in's record has in the journal."""
        return (self.assignment, self.student, self.sha256, GRADER_VERSION)

    def grade(self, *, sandbox: Sandbox, seed: int) -> SubmissionRecord:
        """Grade it; a notebook that cannot be read gets 0 and a sentence that says why."""
        try:
            submission = read_hand_in(self.path)
        except SubmissionError as error:
            return self._unreadable(str(error), sandbox)
        if submission.sha256 != self.sha256:
            raise RuntimeError(f"{self.path} changed while it was being graded")
        return grade_answers(
            self.assignment,
            self.student,
            submission.answers,
            submission_sha256=self.sha256,
            sandbox=sandbox,
            seed=self._own_seed(seed),
            notes=(*self.notes, *submission.notes),
        )

    def _own_seed(self, seed: int) -> int:
        """The seed of this hand-in: what one learns of hidden cases helps neither a neighbour nor another try."""
        digest = hashlib.sha256("\0".join([str(seed), *self.key]).encode("utf-8", "surrogateescape")).digest()
        return int.from_bytes(digest[:8], "little") >> 1

    def not_graded(self, sentence: str) -> SubmissionRecord:
        """The record of a failure of ours: no points, none lost, and the next run tries again."""
        return self._same_for_all(not_graded, sentence, SandboxRecord(NOT_ENTERED))

    def _unreadable(self, sentence: str, sandbox: Sandbox) -> SubmissionRecord:
        return self._same_for_all(not_found, sentence, SandboxRecord(sandbox.level, tuple(sandbox.notes)))

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


def read_hand_in(path: Path) -> Submission:
    """Read a notebook; raises `SubmissionError`, for an empty file too, which stands for one that was not handed in."""
    if not read_bytes(path).strip():
        raise SubmissionError(nothing_handed_in(path))
    return read_submission(path)


def nothing_handed_in(path: Path) -> str:
    """What is said of a notebook that is not there."""
    return f"{path.name} was not handed in, or it is empty."


def handed_in(submitted: Path, assignments: Iterable[str]) -> list[HandedIn]:
    """Everything in nbgrader's ``submitted`` folder that belongs to ``assignments``, by assignment, then student."""
    known = sorted(assignments)
    folders = sorted(submitted.iterdir()) if submitted.is_dir() else []
    return [
        HandedIn(assignment, folder.name, folder / assignment / f"{assignment}.ipynb")
        for assignment in known
        for folder in folders
        if (folder / assignment).is_dir()
    ]
