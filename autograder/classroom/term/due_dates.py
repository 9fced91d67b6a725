"""Enter the due dates of course.toml in the gradebook, where nbgrader and the extensions read them, in UTC.

A notebook that course.toml gives no date keeps what `nbgrader db assignment add NAME --duedate=…` set.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.course_settings import Settings, read_settings


def enter_due_dates(gradebook: Any, rules: Settings) -> None:
    """Let each notebook in nbgrader's `gradebook` be due when the settings say."""
    for name, due in rules.due.items():
        utc = in_gradebook(due)
        assignment = gradebook.update_or_create_assignment(name)
        if assignment.duedate != utc:
            assignment.duedate = utc
            gradebook.db.commit()


def rules_in(config: Any) -> Settings:
    """Return the settings in the file that nbgrader's `config` names."""
    path = config.GradeOutsideKernel.get("settings", "")
    return read_settings(Path(path)) if path else Settings()


def in_gradebook(when: datetime) -> datetime:
    """Return a time with a zone as nbgrader keeps it: in UTC, without a zone."""
    return when.astimezone(UTC).replace(tzinfo=None)


def shown_in(utc: datetime, rules: Settings, notebook: str) -> str:
    """Return a time of nbgrader's, which is in UTC, as `shown`, in the course's zone or else in the due date's."""
    own = rules.due.get(notebook)
    zone = ZoneInfo(rules.time_zone) if rules.time_zone else own.tzinfo if own else UTC
    return shown(utc.replace(tzinfo=UTC).astimezone(zone))


def shown(due: datetime) -> str:
    """Return a time for people, in its own zone.

    >>> shown(datetime.fromisoformat("2027-01-11T23:59:00+01:00"))
    'Monday, 11 January 2027, 23:59 (UTC+01:00)'
    """
    zone = getattr(due.tzinfo, "key", due.tzname())
    return f"{due:%A}, {due.day} {due:%B %Y, %H:%M} ({zone})"
