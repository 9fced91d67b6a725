"""Find the marks that the gradebook already has, so that a second run enters only changes and keeps manual reviews.

nbgrader asks for another review if a mark is entered again after a person changed it. So a digest of the entered marks
of each hand-in is kept in the quarantine folder. The digest no longer matches if nbgrader has autograded the hand-in
outside this grader.
"""

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

from nbformat.v4 import new_notebook
from nbgrader.api import SubmittedAssignment
from nbgrader.preprocessors import AssignLatePenalties

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.quarantine import TIMESTAMP
from autograder.classroom.report.attention import Urgency, attention
from autograder.host.records import SubmissionRecord

NOTED = "entered.txt"
_QUIET = logging.getLogger(f"{__name__}.lateness")  # nbgrader warns about every late student
_QUIET.setLevel(logging.ERROR)


def unchanged(course: Course, graded: Iterable[tuple[HandedIn, SubmissionRecord]]) -> set[HandedIn]:
    """Return the hand-ins whose marks in the gradebook are up to date, late penalty included."""
    found = set()
    with course.gradebook() as gradebook:
        there = {(s.assignment.name, s.student.id): s for s in gradebook.db.query(SubmittedAssignment)}
        for hand_in, record in graded:
            submission = there.get((hand_in.assignment, hand_in.student))
            noted = _noted(course, hand_in)
            if submission and noted.is_file() and noted.read_text() == _digest(course, hand_in, record, submission):
                found.add(hand_in)
    return found


def mark_entered(course: Course, graded: Iterable[tuple[HandedIn, SubmissionRecord]]) -> None:
    """Store the digests of these hand-ins, and mark for Formgrader those that need a person.

    A mark that a person must decide "needs manual grading" in Formgrader; one that a person should check is flagged.
    """
    with course.gradebook() as gradebook:
        for hand_in, record in graded:
            submission = gradebook.find_submission(hand_in.assignment, hand_in.student)
            urgencies = {entry.urgency for entry in attention([record])}
            for notebook in submission.notebooks:
                notebook.flagged = bool(urgencies & {Urgency.MUST, Urgency.SHOULD})
                for grade in notebook.grades:
                    grade.needs_manual_grade = grade.needs_manual_grade or Urgency.MUST in urgencies
            gradebook.db.commit()
            _noted(course, hand_in).parent.mkdir(parents=True, exist_ok=True)
            _noted(course, hand_in).write_text(_digest(course, hand_in, record, submission))


def wants_feedback(course: Course, hand_ins: Iterable[HandedIn]) -> list[HandedIn]:
    """Return the hand-ins whose feedback is missing, or that a person has reviewed."""
    with course.gradebook() as gradebook:
        return [
            one
            for one in hand_ins
            if not (course.feedback / one.student / one.assignment / f"{one.assignment}.html").is_file()
            or _is_reviewed(gradebook.find_submission(one.assignment, one.student))
        ]


def enter_late_penalties(course: Course, hand_ins: Iterable[HandedIn]) -> None:
    """Compute late penalties again, because they are shares of marks that a person may have changed."""
    for one in hand_ins:
        names = {"student": one.student, "assignment": one.assignment, "notebook": one.assignment}
        step = AssignLatePenalties(config=course.api.config, log=_QUIET)
        step.preprocess(new_notebook(), {"nbgrader": names | {"db_url": course.api.coursedir.db_url}})


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
    """Return a digest of everything that the marks depend on: record, lateness, penalty, and nbgrader's copy."""
    config, handed_in_at = course.api.config, hand_in.path.with_name(TIMESTAMP)
    copy = course.autograded / hand_in.student / hand_in.assignment / f"{hand_in.assignment}.ipynb"
    parts = (
        str(copy.stat().st_mtime_ns if copy.is_file() else 0),
        record.to_json(),
        handed_in_at.read_text(errors="replace") if handed_in_at.is_file() else "",
        str(submission.assignment.duedate),
        repr((dict(config.AssignLatePenalties), dict(config.LatePenalty))),
        submission.id,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _noted(course: Course, hand_in: HandedIn) -> Path:
    return course.quarantine / hand_in.student / hand_in.assignment / NOTED
