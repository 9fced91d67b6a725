"""Enter the due dates of course.toml in the gradebook, where nbgrader and the extensions read them, in UTC.

A notebook that course.toml gives no date keeps what `nbgrader db assignment add NAME --duedate=…` set. Which dates came
from course.toml is kept beside the gradebook, so a date goes when its line is removed.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.classroom.whole_files import write_whole
from autograder.course_settings import Settings, read_settings

FILE = "due_dates.json"


def enter_due_dates(gradebook: Any, rules: Settings) -> None:
    """Let each notebook in nbgrader's `gradebook` be due when the settings say."""
    before = _from_settings(gradebook)
    now = {name: in_gradebook(due).isoformat() for name, due in rules.due.items()}
    if before != now:
        write_whole(_file(gradebook), json.dumps({**before, **now}))  # also right if this is killed before the end
    for name in {**before, **now}:
        due = due_in(gradebook, rules, name)
        if due != _entered(gradebook, name):
            gradebook.update_or_create_assignment(name).duedate = due
            gradebook.db.commit()
    if before != now:
        write_whole(_file(gradebook), json.dumps(now))


def due_in(gradebook: Any, rules: Settings, notebook: str) -> datetime | None:
    """Return when a notebook is due, in UTC, once the settings are entered; nothing is written."""
    if notebook in rules.due:
        return in_gradebook(rules.due[notebook])
    due = _entered(gradebook, notebook)
    removed = due is not None and _from_settings(gradebook).get(notebook) == due.isoformat()
    return None if removed else due


def _entered(gradebook: Any, notebook: str) -> datetime | None:
    dates: dict[str, datetime | None] = {one.name: one.duedate for one in gradebook.assignments}
    return dates.get(notebook)


def _from_settings(gradebook: Any) -> dict[str, str]:
    """Return the dates that were entered from course.toml, by notebook."""
    path = _file(gradebook)
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _file(gradebook: Any) -> Path:
    return Path(gradebook.engine.url.database).with_name(FILE)


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
