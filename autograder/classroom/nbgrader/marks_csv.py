"""Export marks as nbgrader does, columns and all, in a file that a spreadsheet reads whatever the roster holds.

nbgrader joins the cells with commas, so a comma in a name moves every mark behind it by a column, and a name that
begins like a formula is one.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin

from autograder.classroom.nbgrader.canvas import plain

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


class MarksExport(ExportPlugin):
    """One row an assignment and student; who handed in nothing has no time and 0 points."""

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
    try:
        found = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return [assignment.name, assignment.duedate, "", *who, 0.0, 0.0, 0.0, assignment.max_score]
    penalty = found.late_submission_penalty or 0.0
    marks = (found.score, penalty, max(0.0, found.score - penalty), found.max_score)
    return [assignment.name, assignment.duedate, found.timestamp, *who, *marks]
