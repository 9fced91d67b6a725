"""Export marks in the form in which Canvas takes a gradebook.

    nbgrader export --exporter autograder.classroom.nbgrader.canvas.CanvasExport --to canvas.csv

Canvas finds a student by the number in the column ID, which is `lms_user_id` of the roster; whoever has none is left
out of the file and named in the log. Columns and the second line follow Canvas's own export.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin

HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "    Points Possible"


class CanvasExport(ExportPlugin):
    """One row a student, one column an assignment; points after the late penalty."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the file `to`, by default canvas.csv."""
        assignments = [a for a in gradebook.assignments if not self.assignment or a.name in self.assignment]
        assignments.sort(key=lambda assignment: assignment.name)
        possible = [f"{assignment.max_score:g}" for assignment in assignments]
        with Path(self.to or "canvas.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*HEAD, *(assignment.name for assignment in assignments)])
            writer.writerow([POSSIBLE, *[""] * (len(HEAD) - 1), *possible])
            writer.writerows(self._rows(gradebook, [assignment.name for assignment in assignments]))

    def _rows(self, gradebook: Gradebook, assignments: list[str]) -> Iterator[list[str]]:
        for student in sorted(gradebook.students, key=lambda one: one.id):
            if self.student and student.id not in map(str, self.student):
                continue
            if not student.lms_user_id:
                self.log.warning("%s has no lms_user_id in the roster and is left out of Canvas's file", student.id)
                continue
            name = ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id
            marks = [_marks(gradebook, assignment, student) for assignment in assignments]
            yield [plain(name), plain(student.lms_user_id), "", plain(student.id), "", *marks]


def _marks(gradebook: Gradebook, assignment: str, student: Any) -> str:
    try:
        submission = gradebook.find_submission(assignment, student.id)
    except MissingEntry:
        return ""  # Canvas leaves an empty cell as it is, where 0 would be a mark
    return f"{max(0.0, submission.score - (submission.late_submission_penalty or 0.0)):g}"


def plain(text: str) -> str:
    """``text`` so that no spreadsheet takes it for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
