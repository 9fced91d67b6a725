"""Deduct points for lateness, and export marks from nbgrader: as a CSV file for spreadsheets, and as one for Canvas.

    nbgrader export --exporter autograder.classroom.nbgrader.export.CanvasExport --to canvas.csv

nbgrader joins the cells with commas, so a comma in a name shifts every mark after it by one column. Spreadsheets run a
name that begins like a formula as a formula.

Canvas finds a student by the number in the column ID, which is `lms_user_id` of the roster. Students without a number
are left out of its file and named in the log. Columns and the second line follow Canvas's own export.
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from traitlets import Float

from autograder.classroom.nbgrader.extensions import days_of
from autograder.classroom.report.data import DECIMALS, plain

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score", "extension_days"),
)
CANVAS_HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "    Points Possible"
DAY_S = 24 * 60 * 60


class MarksExport(ExportPlugin):
    """Write one row for each assignment and student; a student who handed in nothing has no time and 0 points.

    A hand-in that was never scored has no points at all: 0 would pass for a mark.
    """

    def export(self, gradebook: Gradebook) -> None:
        """Write the file `to`, by default grades.csv."""
        with Path(self.to or "grades.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for assignment in gradebook.assignments:
                if self.assignment and assignment.name not in self.assignment:
                    continue
                for student in gradebook.students:
                    if not self.student or student.id in map(str, self.student):
                        writer.writerow(_row(gradebook, assignment, student))


def _row(gradebook: Gradebook, assignment: Assignment, student: Any) -> list[object]:
    who = [plain(text or "") for text in (student.id, student.last_name, student.first_name, student.email)]
    about = [assignment.name, assignment.duedate]
    try:
        found = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return [*about, "", *who, 0.0, 0.0, 0.0, round(assignment.max_score, DECIMALS), ""]
    about.append(found.timestamp)
    more = days_of(found.extension)
    if not _is_scored(found):
        return [*about, *who, "", "", "", round(found.max_score, DECIMALS), more]
    penalty = found.late_submission_penalty or 0.0
    marks = (found.score, penalty, max(0.0, found.score - penalty), found.max_score)
    return [*about, *who, *(round(mark, DECIMALS) for mark in marks), more]


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


class LatePenalty(LateSubmissionPlugin):
    """Deduct a share of the earned points for each started day after a grace period, up to a limit; by default nothing.

    To deduct a tenth of the points per day, set `c.LatePenalty.share_per_day = 0.1` in nbgrader_config.py.
    """

    share_per_day = Float(0.0, min=0.0, max=1.0, help="share of the points earned, for each day begun").tag(config=True)
    grace_s = Float(15 * 60.0, min=0.0, help="seconds after the due time that cost nothing").tag(config=True)
    most = Float(1.0, min=0.0, max=1.0, help="share of the points earned that can be lost at most").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points to deduct from `score`, or None if there is no penalty."""
        days = math.ceil((total_seconds_late - self.grace_s) / DAY_S)
        share = min(days * self.share_per_day, self.most)
        return round(score * share, 4) if share > 0 else None
