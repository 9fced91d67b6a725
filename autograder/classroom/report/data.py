"""Write the class report as data: JSON for programs, CSV for spreadsheets. The HTML page shows the same data."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict

from autograder.classroom.report.summary import ClassSummary, Environment
from autograder.host.records import CheckRecord, ExerciseRecord
from autograder.host.report.safe_text import one_line

SCHEMA = "fusion-course/class/1"
DECIMALS = 4  # of points in a file: a sum of fractions has more
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs a cell that begins with one of these
COLUMNS = (
    *("student", "assignment", "exercise", "status"),
    *("check", "category", "hidden", "check_status", "points", "max_points", "speed", "message", "badge"),
    *("ratio", "ratio_low", "ratio_high"),  # of a check for speed whose ratio was measured, with its 95 % interval
    "bonus",  # of the whole exercise, in each of its lines, where it was assessed; no mark contains it
)


def class_json(summary: ClassSummary, *, title: str, environment: Environment) -> str:
    """Return the whole summary as one JSON document, with every student's records."""
    data = {"schema": SCHEMA, "title": title, "environment": dict(environment.facts), **asdict(summary)}
    return json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False)


def checks_csv(summary: ClassSummary) -> str:
    """Return a header and one line for each student and check; lone surrogates and control characters are replaced."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(_rows(summary))
    return text.getvalue()


def _rows(summary: ClassSummary) -> Iterator[list[object]]:
    for student in summary.students:
        for record in student.submissions:
            for e in record.exercises:
                where = [_cell(student.name), record.assignment, _cell(e.id), str(e.status)]
                bonus = e.bonus.points if e.bonus is not None and e.bonus.assessed else ""
                for c in e.checks:
                    about = [
                        _cell(c.name),
                        _cell(c.category),
                        c.hidden,
                        str(c.status),
                        round(c.points, DECIMALS),
                        round(c.max_points, DECIMALS),
                    ]
                    yield [*where, *about, c.by or "", _cell(c.message), _badge(e), *_ratio(e, c), bonus]


def _badge(exercise: ExerciseRecord) -> str:
    return (exercise.badge and exercise.badge.badge) or ""


def _ratio(exercise: ExerciseRecord, check: CheckRecord) -> list[object]:
    """Return the ratio of a check for speed, with its interval."""
    speed = exercise.speed if check.by else None
    return ["", "", ""] if speed is None else [round(r, 3) for r in (speed.ratio, speed.ratio_low, speed.ratio_high)]


def _cell(text: str) -> str:
    return plain(one_line(text, limit=400))


def plain(text: str) -> str:
    """Return `text` in a form that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
