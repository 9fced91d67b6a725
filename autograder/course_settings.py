"""The course's settings in `course.toml`: where answers compute, which notebooks there are, when each is due.

    device = "auto"
    notebooks = ["00_start_here", "04_fx_capture"]
    time_zone = "Europe/Berlin"
    late = {days = 2, percent_per_day = 10}
    [due]
    00_start_here = 2027-01-11T23:59:00

Commands that grade read the file beside the course's nbgrader_config.py, and never one of a folder that students can
write to. In a notebook, it may lie in the working directory or above it. A setting that is unknown or has a wrong value
is an error, since a misspelt one would change marks without a word.
"""

import difflib
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autograder.host.sandbox import AUTO, is_device_name

FILE: Final = "course.toml"
INSTALLATION = Path(__file__).parents[1]
COURSE_FILE = "nbgrader_config.py"  # is run where it lies in the working directory, so that folder is trusted
MOST_BYTES = 64 << 10
DEVICES = "auto, cpu, cuda or cuda:N"
TEACH_ONLY = "teach-only"
ASSISTANTS = ("open", TEACH_ONLY, "none")  # each has a text in classroom/assistant_rules
_DUE = '"00_start_here" = 2027-01-11T23:59:00+01:00'


class SettingsError(Exception):
    """The settings file is wrong; the message says which line, what it holds, and what is expected."""

    exit_code = 2  # of a command that fails with this error


@dataclass(frozen=True)
class Late:
    """What a late hand-in costs."""

    days: int  # begun days after the due date; a hand-in that comes later earns nothing
    percent_per_day: float  # of the points earned, for each begun day


@dataclass(frozen=True)
class Settings:
    """The settings of a course."""

    device: str = AUTO
    measured: bool = False
    notebooks: tuple[str, ...] = ()  # in order; empty for all
    dropped: tuple[str, ...] = ()  # exercises that count nothing
    due: Mapping[str, datetime] = field(default_factory=dict, hash=False)  # by notebook, each with its zone
    time_zone: str = ""  # of due dates that name none, and of those that are shown
    late: Late | None = None  # None: being late costs nothing
    late_days: int = 0  # of a student in the whole course, for which nothing is deducted
    assistants: str = TEACH_ONLY  # what AI assistants may do, one of `ASSISTANTS`

    def has(self, notebook: str) -> bool:
        """Return whether the course uses the notebook, or another of its number, as `"04_fx_capture"` or `"04_"`.

        >>> Settings(notebooks=("04_fx_capture",)).has("04_read_a_graph")
        True
        """
        numbers = {name.partition("_")[0] for name in self.notebooks}
        return not numbers or notebook.partition("_")[0] in numbers


def is_device_choice(name: object) -> bool:
    """Return whether `name` is `auto` or written like a device.

    >>> is_device_choice("cuda:1"), is_device_choice("gpu")
    (True, False)
    """
    return isinstance(name, str) and (name == AUTO or is_device_name(name))


def course_settings() -> Settings:
    """Return the settings of the course in the working directory, or else of this installation."""
    here = Path.cwd()
    return read_settings(settings_file(here if (here / COURSE_FILE).is_file() else INSTALLATION))


def settings_file(course: Path) -> Path:
    """Return the file with the settings of the course in the folder `course`; `COURSE_SETTINGS` names another one."""
    return course / os.environ.get("COURSE_SETTINGS", FILE)


def own_settings(start: Path) -> Settings:
    """Return the settings in the nearest file from `start` upwards, to run only answers of one's own."""
    start = start.resolve()
    for folder in (start, *start.parents, INSTALLATION):
        if (folder / FILE).is_file():
            return read_settings(folder / FILE)
    return Settings()


def read_settings(path: Path) -> Settings:
    """Return the settings in the file `path`, or the defaults without one; raises `SettingsError` for a wrong one."""
    if not path.exists():
        return Settings()
    try:
        with path.open("rb") as file:
            written = file.read(MOST_BYTES + 1)
        if len(written) > MOST_BYTES:
            raise SettingsError(f"{path} has more than {MOST_BYTES:,} bytes, and settings need fewer.")
        found = tomllib.loads(written.decode())
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}.") from None
    try:
        return _settings(found)
    except _WrongError as error:
        raise SettingsError(f"{path}: {error}") from None


class _WrongError(Exception):
    """A setting is wrong; the message does not name the file."""


def _settings(found: Mapping[str, Any]) -> Settings:
    _require_known(found, [each.name for each in fields(Settings)], "")
    _require(is_device_choice(found.get("device", AUTO)), found, "device", f"{DEVICES}, in quotes")
    _require(isinstance(found.get("measured", False), bool), found, "measured", "true or false, without quotes")
    policies = " or ".join(f'"{policy}"' for policy in ASSISTANTS)
    _require(found.get("assistants", TEACH_ONLY) in ASSISTANTS, found, "assistants", policies)
    notebooks = _names(found, "notebooks", "00_start_here")
    dropped = _names(found, "dropped", "00_doctor")
    zone = _zone(found)
    below = next((each.name for each in fields(Settings) if each.name in _table(found, "due", _DUE)), None)
    if below:
        raise _WrongError(f"{below} is below the line [due], so it is read as a notebook; move it above that line.")
    due = {name: _due(name, when, zone) for name, when in _table(found, "due", _DUE).items()}
    for name in due:
        if notebooks and name not in notebooks:
            raise _WrongError(f"due names {name!r}, which is not in `notebooks`{nearest(name, notebooks)}")
    late = _late(found) if "late" in found else None
    _require(_is_whole(found.get("late_days", 0)), found, "late_days", "a whole number of days from 0 up")
    if found.get("late_days") and late is None:
        raise _WrongError(
            "late_days is set, and nothing is deducted without `late`, as late = {days = 2, percent_per_day = 10}."
        )
    return Settings(**{**found, "notebooks": notebooks, "dropped": dropped, "due": due, "late": late})


def _require_known(found: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for name in found:
        if name not in known:
            raise _WrongError(
                f"{where}{name} is not a setting{nearest(name, known)} The settings are {', '.join(known)}."
            )


def _require(holds: bool, found: Mapping[str, Any], name: str, expected: str) -> None:
    if not holds:
        raise _WrongError(f"{name} is {_shown(found[name])}; expected {expected}.")


def nearest(name: object, known: Collection[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or a full stop.

    >>> nearest("devise", ["device", "measured"])
    '; did you mean device?'
    """
    near = difflib.get_close_matches(str(name)[:100], known, n=1)
    return f"; did you mean {near[0]}?" if near else "."


def _names(found: Mapping[str, Any], setting: str, example: str) -> tuple[str, ...]:
    names = found.get(setting, [])
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    _require(listed, found, setting, f'a list, as {setting} = ["{example}"]')
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _WrongError(f"{setting} names {twice!r} twice.")
    return tuple(names)


def _table(found: Mapping[str, Any], setting: str, example: str) -> Mapping[str, Any]:
    there: Mapping[str, Any] = found.get(setting, {})
    _require(isinstance(there, dict), found, setting, f"a table, as [{setting}] with lines like {example}")
    return there


def _zone(found: Mapping[str, Any]) -> ZoneInfo | None:
    name = found.get("time_zone", "")
    _require(isinstance(name, str), found, "time_zone", 'a zone, as "Europe/Berlin"')
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise _WrongError(f'time_zone is {_shown(name)}; expected a zone, as "Europe/Berlin".') from None


def _due(notebook: str, when: object, zone: ZoneInfo | None) -> datetime:
    if not isinstance(when, datetime):
        expected = f"expected a date and a time, as {_DUE}, without quotes around the time"
        raise _WrongError(f"due has {_shown(when)} for {notebook}; {expected}.")
    if when.tzinfo is None and zone is None:
        raise _WrongError(
            f"due has {when} for {notebook} without a time zone; write it as {_DUE}, "
            'or set time_zone = "Europe/Berlin" above the table.'
        )
    if zone is None:
        return when
    return when.replace(tzinfo=zone) if when.tzinfo is None else when.astimezone(zone)


def _late(found: Mapping[str, Any]) -> Late:
    rules = _table(found, "late", "days = 2")
    known = [each.name for each in fields(Late)]
    _require_known(rules, known, "late.")
    for name in known:
        if name not in rules:
            raise _WrongError(f"late lacks {name}; expected late = {{days = 2, percent_per_day = 10}}.")
    _require(_is_whole(rules["days"]), rules, "days", "a whole number of days from 0 up, in late")
    percent = rules["percent_per_day"]
    is_percent = isinstance(percent, int | float) and not isinstance(percent, bool) and 0 <= percent <= 100
    _require(is_percent, rules, "percent_per_day", "a number from 0 to 100, in late")
    return Late(rules["days"], float(percent))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: object) -> str:
    simple = isinstance(value, str | int | float | bool)
    return repr(value) if simple else str(value) if hasattr(value, "isoformat") else f"a {type(value).__name__}"
