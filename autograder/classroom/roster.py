"""Read a class's roster from a CSV file into nbgrader's gradebook; if a line is wrong, nothing is imported.

The columns are those of `nbgrader db student import`: id, and optionally first_name, last_name, email, lms_user_id.
"""

import csv
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.quarantine import STUDENT
from autograder.classroom.status import UsageError

COLUMNS = ("first_name", "last_name", "email", "lms_user_id")
LONGEST = 128  # characters, the width of the gradebook's columns


class RosterError(UsageError):
    """The roster cannot be used; the message names the line, the reason, and what to do."""


def import_roster(course: Course, path: Path) -> int:
    """Create or update the students of `path` in the gradebook and return their number; nobody is removed."""
    students = read_roster(path)
    with course.gradebook() as gradebook:
        for student, about in students.items():
            entered = gradebook.update_or_create_student(student, **about)
            if entered.last_name is None and entered.first_name is None:
                # otherwise Formgrader shows the name "None, None"
                gradebook.update_or_create_student(student, last_name=student, first_name="")
    return len(students)


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Return the students of a CSV file, by id; raises `RosterError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets begin a file with a byte order mark
    except OSError as error:
        raise RosterError(f"The roster {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise RosterError(f"The roster {path} is not text in UTF-8; save it as 'CSV UTF-8' and try again.") from None
    rows = csv.DictReader(text.splitlines())
    unknown = [name for name in rows.fieldnames or () if name not in ("id", *COLUMNS)]
    if "id" not in (rows.fieldnames or ()) or unknown:
        wrong = f"has the column {unknown[0]!r}" if unknown else "has no column id"
        raise RosterError(f"The roster {path} {wrong}; its first line names id and any of {', '.join(COLUMNS)}.")
    found: dict[str, dict[str, str]] = {}
    for student, about in _checked(rows, path):
        if student in found:
            raise RosterError(f"The roster {path} names {student!r} twice; leave one of the lines out.")
        found[student] = about
    return found


def _checked(rows: "csv.DictReader[str]", path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    for row in rows:
        student = _cell(row, "id")
        where = f"Line {rows.line_num} of the roster {path}"
        if None in row:
            raise RosterError(f"{where} has more cells than the first line; put quotation marks around commas.")
        if not STUDENT.fullmatch(student):
            raise RosterError(f"{where} has the id {student!r:.80}; an id is the name of a student's folder.")
        about = {name: _cell(row, name) for name in COLUMNS if _cell(row, name)}
        if any(len(value) > LONGEST for value in about.values()):
            raise RosterError(f"{where} has a cell of more than {LONGEST} characters; shorten it.")
        yield student, about


def _cell(row: Mapping[str, str | None], name: str) -> str:
    return unicodedata.normalize("NFC", (row.get(name) or "").strip())  # as folders are named
