"""Export marks from nbgrader: for spreadsheets, for Canvas, and as students' pages.

    nbgrader export --exporter autograder.classroom.nbgrader.export.CanvasExport --to canvas.csv

nbgrader joins the cells with commas, so a comma in a name shifts every mark after it by one column. Spreadsheets run a
name that begins like a formula as a formula.

Canvas finds a student by the number in the column ID, which is `lms_user_id` of the roster. Students without a number
are left out of its file and named in the log. Columns and the second line follow Canvas's own export.
"""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import (
    Assignment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.plugins import ExportPlugin
from sqlalchemy import or_

from autograder.classroom.nbgrader.extensions import Extension, days_of, deadline, end_of, kept
from autograder.classroom.nbgrader.late_penalties import lateness_in
from autograder.classroom.report.data import DECIMALS, plain
from autograder.classroom.report.own_marks import PAGE, NotebookMarks, feedback_page, marks_html
from autograder.classroom.term.due_dates import rules_in, shown_in
from autograder.classroom.term.lateness import Lateness, deducted_for_lateness
from autograder.classroom.whole_files import write_whole
from autograder.course_settings import Settings
from autograder.exercises import of_assignment
from autograder.exercises.answer_cells import CHECK

if TYPE_CHECKING:
    from autograder.classroom.nbgrader.course import Course

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score", "extension_days"),
    *("late_days", "free_late_days", "late"),
)
CANVAS_HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "    Points Possible"


class MarksExport(ExportPlugin):
    """Write one row for each assignment and student; a student who handed in nothing has no time and 0 points.

    A hand-in that was never scored has no points at all, nor has a student with time left: 0 would pass for a mark.
    """

    def export(self, gradebook: Gradebook) -> None:
        """Write the file `to`, by default grades.csv."""
        with Path(self.to or "grades.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            lateness = lateness_in(gradebook, rules_in(self.config))
            journal = self.config.GradeOutsideKernel.get("journal", "")
            extensions = kept(Path(journal)) if journal else []
            for assignment in gradebook.assignments:
                if self.assignment and assignment.name not in self.assignment:
                    continue
                for student in gradebook.students:
                    if not self.student or student.id in map(str, self.student):
                        late = lateness.get(student.id, {}).get(assignment.name)
                        writer.writerow([*_row(gradebook, assignment, student, extensions), *_late(late)])


def _row(gradebook: Gradebook, assignment: Assignment, student: Any, extensions: Sequence[Extension]) -> list[object]:
    who = [plain(text or "") for text in (student.id, student.last_name, student.first_name, student.email)]
    about = [assignment.name, assignment.duedate]
    try:
        found = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        end = _end(gradebook, assignment, student.id, extensions)
        points = [""] * 3 if _is_open(end) else [0.0] * 3
        more = days_of(end - assignment.duedate) if end else ""
        return [*about, "", *who, *points, round(assignment.max_score, DECIMALS), more]
    about.append(found.timestamp)
    more = days_of(found.extension)
    if not _is_scored(found):
        return [*about, *who, "", "", "", round(found.max_score, DECIMALS), more]
    penalty = found.late_submission_penalty or 0.0
    marks = (found.score, penalty, max(0.0, found.score - penalty), found.max_score)
    return [*about, *who, *(round(mark, DECIMALS) for mark in marks), more]


def _late(late: Lateness | None) -> list[object]:
    return [late.days, late.free, late.sentence] if late else ["", "", ""]


def _end(
    gradebook: Gradebook, assignment: Assignment, student: str, extensions: Sequence[Extension]
) -> datetime | None:
    """Return until when a student without a hand-in can hand in, in UTC; only an extension takes a query."""
    own = [one for one in extensions if one.student == student]
    due: datetime | None = assignment.duedate
    return deadline(gradebook, own, assignment.name, student) if own else due


def _is_open(due: datetime | None) -> bool:
    """Return whether a notebook that is due at `due`, in UTC, can be handed in now and be on time."""
    return due is not None and due > datetime.now(UTC).replace(tzinfo=None)


def _is_scored(submission: SubmittedAssignment) -> bool:
    """Return whether a hand-in has a mark, the grader's or a person's; without one its sum of points says nothing."""
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    return not grades or any(g.auto_score is not None or g.manual_score is not None for g in grades)


class CanvasExport(ExportPlugin):
    """Write one row for each student and one column for each assignment, with the points after the late penalty."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the file `to`, by default canvas.csv."""
        assignments = [a for a in gradebook.assignments if not self.assignment or a.name in self.assignment]
        assignments.sort(key=lambda assignment: assignment.name)
        possible = [f"{assignment.max_score:g}" for assignment in assignments]
        with Path(self.to or "canvas.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*CANVAS_HEAD, *(assignment.name for assignment in assignments)])
            writer.writerow([POSSIBLE, *[""] * (len(CANVAS_HEAD) - 1), *possible])
            writer.writerows(self._rows(gradebook, [assignment.name for assignment in assignments]))

    def _rows(self, gradebook: Gradebook, assignments: list[str]) -> Iterator[list[str]]:
        for student in sorted(gradebook.students, key=lambda one: one.id):
            if self.student and student.id not in map(str, self.student):
                continue
            if not student.lms_user_id:
                self.log.warning("%s has no lms_user_id in the roster and is left out of Canvas's file", student.id)
                continue
            name = ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id
            marks = [_points(gradebook, assignment, student) for assignment in assignments]
            yield [plain(name), plain(student.lms_user_id), "", plain(student.id), "", *marks]


def _points(gradebook: Gradebook, assignment: str, student: Any) -> str:
    points = points_of(gradebook, assignment, student.id)
    return "" if points is None else f"{points:g}"  # Canvas ignores an empty cell, but imports 0 as a mark


def points_of(gradebook: Gradebook, assignment: str, student: str) -> float | None:
    """Return the points of a hand-in after the late penalty; None if there is no hand-in or no mark."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    if not _is_scored(submission):
        return None
    return round(max(0.0, submission.score - (submission.late_submission_penalty or 0.0)), DECIMALS)


def marks_by_student(
    gradebook: Gradebook, rules: Settings, extensions: Sequence[Extension]
) -> dict[str, tuple[NotebookMarks, ...]]:
    """Return the marks of each student in the gradebook, by id, for the course's notebooks that somebody handed in.

    `extensions` are those that `autograder extend` gave, of which the gradebook knows nothing before a hand-in.
    """
    submissions = {(s.assignment.name, s.student.id): s for s in gradebook.db.query(SubmittedAssignment)}
    given = or_(Grade.auto_score.isnot(None), Grade.manual_score.isnot(None))
    query = gradebook.db.query(SubmittedNotebook.assignment_id).join(Grade, Grade.notebook_id == SubmittedNotebook.id)
    scored = {found for (found,) in query.filter(given).distinct()}
    dropped = _dropped(gradebook)
    late = lateness_in(gradebook, rules)
    handed_in = {s.assignment for s in submissions.values() if rules.has(s.assignment.name)}
    assignments = sorted(handed_in, key=lambda assignment: str(assignment.name))
    found: dict[str, tuple[NotebookMarks, ...]] = {}
    for student in gradebook.students:
        rows = []
        for each in assignments:
            submission = submissions.get((each.name, student.id))
            if submission is None:
                row = _without_hand_in(each, _end(gradebook, each, student.id, extensions), rules)
            else:
                row = _marks(submission, scored, late.get(student.id, {}).get(each.name), rules)
            without = [f"{', '.join(dropped[each.name])}: not counted"] if dropped[each.name] else []
            rows.append(replace(row, notes=(*row.notes, *without)))
        found[student.id] = tuple(rows)
    return found


def _dropped(gradebook: Gradebook) -> dict[str, list[str]]:
    """Return the exercises that are worth nothing in the gradebook, by notebook."""
    nothing = {cell.name.removesuffix(CHECK) for cell in gradebook.db.query(GradeCell).filter(GradeCell.max_score == 0)}
    by_notebook: dict[str, list[str]] = defaultdict(list)
    for assignment in gradebook.assignments:
        by_notebook[assignment.name] = [name for name in of_assignment(assignment.name) if name in nothing]
    return by_notebook


def _without_hand_in(assignment: Any, due: datetime | None, rules: Settings) -> NotebookMarks:
    """Return the marks of a student who handed in nothing, and can until `due`."""
    name = str(assignment.name)
    if due is not None and _is_open(due):
        return NotebookMarks(name, 0.0, assignment.max_score, False, (f"open until {shown_in(due, rules, name)}",))
    return NotebookMarks(name, 0.0, assignment.max_score, True, ("not handed in",))


def _marks(submission: Any, scored: Collection[str], late: Lateness | None, rules: Settings) -> NotebookMarks:
    name, due, longer = str(submission.assignment.name), submission.assignment.duedate, submission.extension
    if submission.id not in scored:
        return NotebookMarks(name, 0.0, submission.max_score, False, ("handed in, without a mark so far",))
    penalty = submission.late_submission_penalty or 0.0
    notes = [deducted_for_lateness(penalty)] if penalty else []
    notes += [late.sentence.rstrip(".")] if late else []
    notes += [f"you had time until {end_of(due, longer, rules, name)}"] if longer and due else []
    notes += ["a part is not read by a person yet"] if submission.needs_manual_grade else []
    return NotebookMarks(name, max(0.0, submission.score - penalty), submission.max_score, True, tuple(notes))


def write_marks(course: "Course") -> None:
    """Write the page of each student into the folder of their feedback."""
    with course.gradebook() as gradebook:
        names = {s.id: " ".join(filter(None, (s.first_name, s.last_name))) or s.id for s in gradebook.students}
        for student, rows in marks_by_student(gradebook, course.rules(), kept(course.journal)).items():
            folder = course.feedback / student
            linked = [row.notebook for row in rows if (folder / feedback_page(row.notebook)).is_file()]
            write_whole(folder / PAGE, marks_html(names[student], rows, linked))
