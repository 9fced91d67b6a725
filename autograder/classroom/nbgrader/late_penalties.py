"""Enter what late hand-ins cost in the gradebook, as nbgrader's late penalty, and show it in a class's records.

Late days that one notebook uses up are missing for those that are due later. So after a grading the penalties of all
notebooks of its students are reckoned again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.plugins import LateSubmissionPlugin

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.report.attention import Attention, Urgency
from autograder.classroom.term.due_dates import rules_in
from autograder.classroom.term.lateness import Lateness, LateRecord, latenesses
from autograder.course_settings import Settings
from autograder.host.records import SubmissionRecord
from autograder.host.report.wording import number


class LatePenalty(LateSubmissionPlugin):
    """Deduct what course.toml says, for nbgrader's own autograding."""

    parent: Any  # nbgrader's AssignLatePenalties, with the gradebook open

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points to deduct from `score`, or None if there is no penalty."""
        of_student = lateness_in(self.parent.gradebook, rules_in(self.config), student_id).get(student_id, {})
        late = of_student.get(self.parent.assignment_id)
        return (late.deducted(score) or None) if late else None


def lateness_in(gradebook: Gradebook, rules: Settings, student: str = "") -> dict[str, Mapping[str, Lateness]]:
    """Return the lateness of each late hand-in, by student and notebook; of one student if `student` is given."""
    found: dict[str, list[tuple[datetime, str, float]]] = {}
    if rules.late is None:
        return {}
    submissions = gradebook.db.query(SubmittedAssignment)
    if student:
        submissions = submissions.filter(SubmittedAssignment.student_id == student)
    for one in submissions:
        if one.total_seconds_late and rules.has(one.assignment.name):
            late = (one.assignment.duedate, one.assignment.name, one.total_seconds_late)
            found.setdefault(one.student.id, []).append(late)
    return {who: latenesses([late[1:] for late in sorted(of_one)], rules) for who, of_one in found.items()}


def enter_late_penalties(course: Course, hand_ins: Iterable[HandedIn]) -> list[HandedIn]:
    """Reckon the late penalties of these students again, and return the hand-ins, of any notebook, whose one changed.

    They depend on marks that a person may have changed, on extensions, and on late days that other notebooks use up.
    """
    rules, students = course.rules(), {one.student for one in hand_ins}
    changed = []
    with course.gradebook() as gradebook:
        lateness = lateness_in(gradebook, rules)
        for submission in gradebook.db.query(SubmittedAssignment):
            name, student = submission.assignment.name, submission.student.id
            late = lateness.get(student, {}).get(name)
            for notebook in submission.notebooks if student in students else ():
                penalty = late.deducted(notebook.score) if late else 0.0
                if penalty != (notebook.late_submission_penalty or 0.0):
                    notebook.late_submission_penalty = penalty or None
                    path = course.submitted / student / name / f"{name}.ipynb"
                    changed.append(HandedIn(name, student, path, ""))
        gradebook.db.commit()
    return changed


def with_lateness(
    course: Course, records: Iterable[SubmissionRecord]
) -> tuple[tuple[SubmissionRecord, ...], list[Attention]]:
    """Return the records with what the gradebook deducts from each, and an entry for each late hand-in."""
    done, told = [], []
    with course.gradebook() as gradebook:
        lateness = lateness_in(gradebook, course.rules())
        for record in records:
            late = lateness.get(record.student, {}).get(record.assignment)
            if late is None:
                done.append(record)
                continue
            deducted = gradebook.find_submission(record.assignment, record.student).late_submission_penalty
            whole = {field.name: getattr(record, field.name) for field in fields(record)}
            done.append(LateRecord(**whole, deducted=deducted, late=late.sentence))
            points = f" This costs {number(round(deducted, 2))} points." if deducted else ""
            told.append(Attention(Urgency.COULD, record.student, record.assignment, f"{late.sentence}{points}"))
    return tuple(done), told
