"""Which of several hand-ins of a student counts: the newest that is in time, or the newest if none is.

In time is until the student's own due date, and the quarter of an hour after it that costs nothing.
"""

import os
import re
import stat
from datetime import datetime, timedelta
from pathlib import Path

from autograder.classroom.term.lateness import GRACE_S

TIMESTAMP = "timestamp.txt"  # in a hand-in: when it was handed in
SMALL_BYTES = 4096  # the most that a file of one line holds
# no path, since the name of a time zone is looked up as a file
_ZONE = r"[A-Za-z]+(?:[_/-][A-Za-z]+)*(?:[+-]\d{1,2})?|[+-]\d\d:?\d\d"
_TIME = re.compile(rf"\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)? ?(?:{_ZONE})?", re.ASCII)


def in_time(when: datetime, due: datetime | None) -> bool:
    """Return whether a hand-in of the time `when` is in time; both are in UTC, without a zone.

    >>> in_time(datetime(2027, 1, 11, 12, 15), datetime(2027, 1, 11, 12))
    True
    """
    return due is None or when <= due + timedelta(seconds=GRACE_S)


def rank(when: datetime, due: datetime | None) -> tuple[bool, datetime]:
    """Return what decides which of two hand-ins of a student counts: the one with the higher rank."""
    return in_time(when, due), when


def not_counted(later: datetime, counts: datetime, due: datetime | None) -> str:
    """Return a sentence if a hand-in of the time `later` is not the one that counts, because it is late; else ""."""
    if later <= counts or in_time(later, due) or not in_time(counts, due):
        return ""
    return (
        f"A later hand-in, of {later:%Y-%m-%d %H:%M} UTC, is late and does not count; this one of "
        f"{counts:%Y-%m-%d %H:%M} UTC counts, as the newest in time."
    )


def time_of(folder: Path) -> datetime | None:
    """Return when the hand-in in `folder` was handed in, in UTC without a zone; None if no time is in it.

    It must be a whole date that nbgrader can read, too.
    """
    from nbgrader.utils import parse_utc

    text = small_text(folder / TIMESTAMP)
    if not _TIME.fullmatch(text):
        return None
    try:
        when: datetime = parse_utc(text)
    except Exception:  # the parser of dates has more errors than it names
        return None
    return when


def small_text(path: Path) -> str:
    """Return the text of a small regular file without the space around it; empty for any other, or no text in UTF-8."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        found = os.fstat(opened)
        small = stat.S_ISREG(found.st_mode) and found.st_size <= SMALL_BYTES
        return os.read(opened, SMALL_BYTES).decode().strip() if small else ""
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(opened)
