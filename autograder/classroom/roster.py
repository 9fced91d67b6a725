"""Read a class's roster from a CSV file into nbgrader's gradebook; if a line is wrong, nothing is imported.

The columns are those of `nbgrader db student import`: id, and optionally first_name, last_name, email, lms_user_id. A
list that Canvas or Moodle exported is read as it is.
"""

import csv
import io
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.quarantine import STUDENT
from autograder.classroom.platforms.roster_columns import About, Row, converter
from autograder.classroom.platforms.roster_lookup import roster_of
from autograder.classroom.status import UsageError

COLUMNS = ("first_name", "last_name", "email", "lms_user_id")
Convert = Callable[[Row], About]
LONGEST = 128  # characters, the width of the gradebook's columns


class RosterError(UsageError):
    """The roster cannot be used; the message names the line, the reason, and what to do."""


def import_roster(course: Course, path: Path) -> int:
    """Create or update the students of `path` in the gradebook and return their number; no student is removed.

    A student of a platform's list who is in the gradebook, with the same e-mail address or number, keeps the id.
    """
    students, exported = read_roster(path)
    with course.gradebook() as gradebook:
        known = roster_of(gradebook.students)
        for name, about in students.items():
            student = (exported and known.account(about.get("email", ""), about.get("lms_user_id", ""))) or name
            entered = gradebook.update_or_create_student(student, **about)
            if entered.last_name is None and entered.first_name is None:
                # otherwise Formgrader shows the name "None, None"
                gradebook.update_or_create_student(student, last_name=student, first_name="")
    return len(students)


def read_roster(path: Path) -> tuple[dict[str, dict[str, str]], bool]:
    """Return the students of a CSV file, by id, and whether a platform exported it; raises `RosterError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets begin a file with a byte order mark
    except OSError as error:
        raise RosterError(f"The roster {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise RosterError(f"The roster {path} is not text in UTF-8; save it as 'CSV UTF-8' and try again.") from None
    found: dict[str, dict[str, str]] = {}
    try:
        rows, convert = _opened(text, path)
        for student, about in _checked(rows, path, convert):
            if student in found:
                raise RosterError(f"The roster {path} names {student!r} twice; leave one of the lines out.")
            found[student] = about
    except csv.Error as error:
        raise RosterError(f"The roster {path} is no CSV file ({error}); export it again.") from error
    if not found:
        raise RosterError(f"The roster {path} has no student; export it again.")
    return found, convert is not None


def _opened(text: str, path: Path) -> tuple["csv.DictReader[str]", Convert | None]:
    """Return the lines of a roster, and what takes them if a platform exported it."""
    for delimiter in ",;\t":  # spreadsheets, and Canvas, separate cells as the language of their user does
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns = [name.strip() for name in rows.fieldnames or ()]
        if "id" in columns or converter(columns):
            break
    else:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        columns = list(rows.fieldnames or ())
    convert = None if "id" in columns else converter(columns)
    unknown = [name for name in columns if name not in ("id", *COLUMNS)]
    if convert is None and ("id" not in columns or unknown):
        wrong = f"has the column {unknown[0]!r}" if unknown else "has no column id"
        ours = f"its first line names id and any of {', '.join(COLUMNS)}"
        raise RosterError(
            f"The roster {path} {wrong}; {ours}, or it is a list that Canvas or Moodle, in English, exported."
        )
    return rows, convert


def _checked(rows: "csv.DictReader[str]", path: Path, convert: Convert | None) -> Iterator[tuple[str, dict[str, str]]]:
    for row in rows:
        where = f"Line {rows.line_num} of the roster {path}"
        if None in row:
            raise RosterError(f"{where} has more cells than the first line; put quotation marks around commas.")
        line = {name.strip(): _cell(row, name) for name in row}
        if convert and not (line := convert({name.lower(): text for name, text in line.items()})):
            continue
        student = line["id"]
        if convert and not student:
            raise RosterError(
                f"{where} has neither a login nor an e-mail address; let the platform show them, and export."
            )
        if not STUDENT.fullmatch(student):
            raise RosterError(f"{where} has the id {student!r:.80}; an id is the name of a student's folder.")
        about = {name: line[name] for name in COLUMNS if line.get(name)}
        if any(len(value) > LONGEST for value in about.values()):
            raise RosterError(f"{where} has a cell of more than {LONGEST} characters; shorten it.")
        yield student, about


def _cell(row: Mapping[str, str | None], name: str) -> str:
    return unicodedata.normalize("NFC", (row.get(name) or "").strip())  # as folders are named
