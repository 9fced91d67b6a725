"""Take a class list as Canvas and Moodle export it: which of their columns are an id, a name, an address, a number.

Canvas's columns follow `lib/gradebook_exporter.rb` of its own code. Moodle has two lists: the participants of a course,
and the grading worksheet of an assignment.
"""

import re
from collections.abc import Callable, Iterable, Mapping

Row = Mapping[str, str]  # by the column's name in small letters
About = dict[str, str]  # by our own column's name; empty for a line that is no student
TEST_STUDENT = "Student, Test"  # Canvas's name for a teacher who looks at the course as a student


def converter(columns: Iterable[str]) -> Callable[[Row], About] | None:
    """Return what takes a line of the platform with these columns; None if they are of no platform.

    >>> canvas = converter(["Student", "ID", "SIS User ID", "SIS Login ID", "Section"])
    >>> canvas({"student": "Ruiz, Ana", "id": "7", "sis login id": "ar"})
    {'id': 'ar', 'first_name': 'Ana', 'last_name': 'Ruiz', 'email': '', 'lms_user_id': '7'}
    """
    found = {column.strip().lower() for column in columns}
    if "id" in found and "section" in found and found & {"student", "lastname"}:
        return _canvas
    if found & {"email address", "username"} and found & {"full name", "last name", "surname"}:
        return _moodle
    return None


def _canvas(row: Row) -> About:
    name, number = row.get("student", ""), row["id"]
    if not number or name == TEST_STUDENT:  # lines above the students: "Points Possible", and how marks are posted
        return {}
    last, _, first = name.partition(", ")
    login = row.get("sis login id", "")
    return {
        "id": _folder(login or row.get("sis user id", "") or number),
        "first_name": row.get("firstname", first),
        "last_name": row.get("lastname", last),
        "email": login if "@" in login else "",
        "lms_user_id": number,
    }


def _moodle(row: Row) -> About:
    last = row.get("last name") or row.get("surname") or row.get("full name", "")
    email = row.get("email address", "")
    return {
        "id": _folder(row.get("username") or email),
        "first_name": row.get("first name", ""),
        "last_name": last,
        "email": email,
    }


def _folder(account: str) -> str:
    """Return an account without characters that the name of a student's folder cannot have."""
    return re.sub(r"[^\w.@+ -]", "", account)
