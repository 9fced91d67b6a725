"""Find the marks that the gradebook already has, so that a second run enters only changes and keeps manual reviews.

nbgrader asks for another review if a mark is entered again after a person changed it. So a digest of the entered marks
of each hand-in is kept in the quarantine folder. The digest no longer matches if nbgrader has autograded the hand-in
outside this grader.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, SubmittedAssignment

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.nbgrader.course import Course, quiet_additions
from autograder.classroom.report.attention import Urgency, attention
from autograder.classroom.term.which_counts import TIMESTAMP
from autograder.host.records import SubmissionRecord

NOTED = "entered.txt"


@dataclass(frozen=True)
class SetAside:
    """A hand-in that a step failed for, and the sentence about it for a person."""

    hand_in: HandedIn
    sentence: str


def unchanged(course: Course, graded: Iterable[tuple[HandedIn, SubmissionRecord]]) -> set[HandedIn]:
    """Return the hand-ins whose marks in the gradebook are up to date, but for late penalties."""
    found = set()
    with course.gradebook() as gradebook:
        there = {(s.assignment.name, s.student.id): s for s in gradebook.db.query(SubmittedAssignment)}
        for hand_in, record in graded:
            submission = there.get((hand_in.assignment, hand_in.student))
            with contextlib.suppress(Exception):  # then its marks are entered again, behind the wall
                noted = _noted(course, hand_in)
                if submission and noted.is_file() and noted.read_text() == _digest(course, hand_in, record, submission):
                    found.add(hand_in)
    return found


def mark_entered(course: Course, graded: Iterable[tuple[HandedIn, SubmissionRecord]]) -> list[SetAside]:
    """Store the digests of these hand-ins, and mark for Formgrader those that need a person.

    A mark that a person must decide "needs manual grading" in Formgrader; one that a person should check is flagged.
    """
    records = dict(graded)
    with course.gradebook() as gradebook:
        return _each(gradebook, records, lambda one: _mark(course, gradebook, one, records[one]))


def _each(gradebook: Gradebook, hand_ins: Iterable[HandedIn], do: Callable[[HandedIn], None]) -> list[SetAside]:
    """Call `do` for every hand-in; return those for which it failed."""
    failed = []
    for one in hand_ins:
        try:
            do(one)
        except Exception as error:  # one hand-in must not stop the class
            gradebook.db.rollback()
            failed.append(SetAside(one, f"The gradebook failed for it: {type(error).__name__}: {error}"))
    return failed


def _mark(course: Course, gradebook: Gradebook, hand_in: HandedIn, record: SubmissionRecord) -> None:
    submission = gradebook.find_submission(hand_in.assignment, hand_in.student)
    urgencies = {entry.urgency for entry in attention([record])}
    for notebook in submission.notebooks:
        notebook.flagged = bool(urgencies & {Urgency.MUST, Urgency.SHOULD})
        for grade in notebook.grades:
            grade.needs_manual_grade = grade.needs_manual_grade or Urgency.MUST in urgencies
    gradebook.db.commit()
    _noted(course, hand_in).parent.mkdir(parents=True, exist_ok=True)
    _noted(course, hand_in).write_text(_digest(course, hand_in, record, submission))


def leave_open(course: Course, hand_ins: Iterable[HandedIn]) -> list[SetAside]:
    """Enter hand-ins that could not be graded without marks, so that Formgrader shows "needs autograding".

    Marks and pages of an earlier hand-in are removed, since they would pass for those of this one. What a person
    decided stays.
    """
    with course.gradebook() as gradebook, quiet_additions():
        return _each(gradebook, hand_ins, lambda one: _leave_open(course, gradebook, one))


def _leave_open(course: Course, gradebook: Gradebook, one: HandedIn) -> None:
    for folder in (course.autograded, course.feedback):
        shutil.rmtree(folder / one.student / one.assignment, ignore_errors=True)
    gradebook.update_or_create_student(one.student)
    for notebook in gradebook.update_or_create_submission(one.assignment, one.student).notebooks:
        notebook.late_submission_penalty = None
        for grade in notebook.grades:
            grade.auto_score = None
    gradebook.db.commit()


def wants_feedback(course: Course, hand_ins: Iterable[HandedIn]) -> list[HandedIn]:
    """Return the hand-ins whose feedback is missing, or that a person has reviewed."""
    with course.gradebook() as gradebook:
        return [
            one
            for one in hand_ins
            if not (course.feedback / one.student / one.assignment / f"{one.assignment}.html").is_file()
            or _is_reviewed(gradebook.find_submission(one.assignment, one.student))
        ]


def without_hand_in(course: Course, hand_ins: Iterable[HandedIn]) -> dict[str, tuple[str, ...]]:
    """Return, for each assignment with a hand-in, the students of the roster who handed in nothing."""
    by_assignment: dict[str, set[str]] = {}
    for hand_in in hand_ins:
        by_assignment.setdefault(hand_in.assignment, set()).add(hand_in.student)
    with course.gradebook() as gradebook:
        everybody = {student.id for student in gradebook.students}
    return {name: tuple(sorted(everybody - there)) for name, there in by_assignment.items() if everybody - there}


def _is_reviewed(submission: SubmittedAssignment) -> bool:
    grades = [g for notebook in submission.notebooks for g in notebook.grades]
    comments = [c for notebook in submission.notebooks for c in notebook.comments]
    return any(g.manual_score is not None or g.extra_credit for g in grades) or any(c.manual_comment for c in comments)


def _digest(course: Course, hand_in: HandedIn, record: SubmissionRecord, submission: SubmittedAssignment) -> str:
    """Return a digest of everything that the marks depend on: record, points, due date, nbgrader's copy."""
    handed_in_at = hand_in.path.with_name(TIMESTAMP)
    copy = course.autograded / hand_in.student / hand_in.assignment / f"{hand_in.assignment}.ipynb"
    parts = (
        str(copy.stat().st_mtime_ns if copy.is_file() else 0),
        record.to_json(),
        handed_in_at.read_text(encoding="utf-8", errors="replace") if handed_in_at.is_file() else "",
        str(submission.assignment.duedate),
        str(submission.extension),
        submission.id,
        repr(
            sorted((c.name, c.max_score) for notebook in submission.assignment.notebooks for c in notebook.grade_cells)
        ),
    )
    # surrogatepass, because a student's text may contain half a surrogate pair
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _noted(course: Course, hand_in: HandedIn) -> Path:
    return course.quarantine / hand_in.student / hand_in.assignment / NOTED
