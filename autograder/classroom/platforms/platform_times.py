"""Read the time of a hand-in as learning platforms write it: in numbers, or in English.

A platform writes most times without a time zone, as its user sees them.
"""

import re
from datetime import UTC, datetime, tzinfo

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_CLOCK = r"(?P<hour>\d{1,2}):?(?P<minute>\d\d)(?::(?P<second>\d\d))?(?:\s?(?P<half>[ap])\.?m\.?)?"
_WORDS = (  # "Wednesday, 10 June 2026, 2:14 PM", "June 10, 2026, 14:14", and without colons in the names of files
    re.compile(rf"(?:[a-z]+,\s)?(?P<day>\d{{1,2}})\s(?P<month>[a-z]+)\.?\s(?P<year>\d{{4}}),?\s{_CLOCK}"),
    re.compile(rf"(?:[a-z]+,\s)?(?P<month>[a-z]+)\.?\s(?P<day>\d{{1,2}}),\s(?P<year>\d{{4}}),?\s{_CLOCK}"),
)
_PARTS = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)")  # Blackboard
_DIGITS = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d{3}")  # earlier versions of Sakai, in UTC
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(Z|UTC|[+-]\d\d:?\d\d)")


def read_time(text: str, zone: tzinfo | None = None) -> datetime | None:
    """Return the time that `text` holds, in UTC; None if it holds none that can be read.

    Args:
        text: as the platform wrote it, e.g. "Thursday, 15 January 2026, 11:30 AM".
        zone: the time zone of a text that has none; by default this machine's.

    >>> read_time("Thursday, 15 January 2026, 11:30 PM", UTC)
    datetime.datetime(2026, 1, 15, 23, 30, tzinfo=datetime.timezone.utc)
    """
    text = " ".join(text.lower().split())
    try:
        if found := _ISO.fullmatch(text.upper()):
            day, clock, offset = found.groups()
            return datetime.fromisoformat(f"{day}T{clock}{offset.replace('UTC', 'Z')}").astimezone(UTC)
        if found := _DIGITS.fullmatch(text):
            return _date(found).replace(tzinfo=UTC)
        if found := _PARTS.fullmatch(text):
            wall = _date(found)
        elif said := next(filter(None, (words.fullmatch(text) for words in _WORDS)), None):
            wall = _wall(said)
        else:
            return None
        return wall.replace(tzinfo=zone).astimezone(UTC)  # without a zone it is local time
    except (ValueError, OverflowError):  # no such day or hour
        return None


def has_zone(text: str) -> bool:
    """Return whether a time says its own time zone, or is in UTC by its platform's rule."""
    text = " ".join(text.split())
    return bool(_ISO.fullmatch(text) or _DIGITS.fullmatch(text))


def _date(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = map(int, found.groups())
    return datetime(year, month, day, hour, minute, second)


def _wall(said: re.Match[str]) -> datetime:
    hour = int(said["hour"])
    if said["half"]:
        hour = hour % 12 + 12 * (said["half"] == "p")
    day = (int(said["year"]), _month(said["month"]), int(said["day"]))
    return datetime(*day, hour, int(said["minute"]), int(said["second"] or 0))


def _month(word: str) -> int:
    """Return the number of an English month; raises `ValueError` for another word."""
    for number, name in enumerate(MONTHS, 1):
        if word in (name, name[:3]) or (word == "sept" and name == "september"):
            return number
    raise ValueError(f"{word!r} is not an English month")
