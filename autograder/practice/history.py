"""The local history of practice: one line of JSON for each check and each hint, in the user's state folder.

No other program reads it.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.host.records import ExerciseRecord

MAX_READ_BYTES = 8 * 2**20  # about 60,000 checks; only the newest part of a longer file is read


@dataclass(frozen=True)
class Attempt:
    """One call of `check`: its time, its exercise, and the result of the visible checks."""

    time: str  # ISO 8601, UTC
    exercise: str
    points: float
    max_points: float
    status: str

    def __post_init__(self) -> None:
        if not (isinstance(self.exercise, str) and isinstance(self.time, str) and isinstance(self.status, str)):
            raise TypeError("an attempt names its exercise, time and status in text")
        if not 0 <= float(self.points) <= float(self.max_points):
            raise ValueError(f"{self.points} of {self.max_points} points")


@dataclass(frozen=True)
class HintTaken:
    """One call of `hint`: its time, its exercise, and the last step shown, from 1."""

    time: str  # ISO 8601, UTC
    exercise: str
    hint: int

    def __post_init__(self) -> None:
        if not (isinstance(self.exercise, str) and isinstance(self.time, str) and type(self.hint) is int):
            raise TypeError("a hint names its exercise and time in text, and its step as a whole number")


def history_path() -> Path:
    """Return the path of the history: `$XDG_STATE_HOME/fusion-course/practice.jsonl`, else below `~/.local/state`."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".local" / "state"
    return base / "fusion-course" / "practice.jsonl"


def remember(record: ExerciseRecord) -> None:
    """Append one attempt; a full or read-only disk loses only this line, and the check still shows its result."""
    _append(Attempt(_now(), record.id, record.points, record.max_points, record.status.value))


def remember_hint(exercise_id: str, step: int) -> None:
    """Append one shown hint, like `remember`."""
    _append(HintTaken(_now(), exercise_id, step))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _append(entry: Attempt | HintTaken) -> None:
    line = json.dumps(asdict(entry), separators=(",", ":")) + "\n"
    try:
        path = history_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            torn = file.tell() > 0 and not _ends_with_newline(path)
            file.write(("\n" * torn + line).encode())
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return


def attempts() -> Iterator[Attempt]:
    """Yield every readable attempt, oldest first; damaged or unknown lines are skipped."""
    for line in _lines():
        try:
            yield Attempt(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue


def hints_taken() -> dict[str, int]:
    """Return the furthest step shown of each exercise's hints."""
    furthest: dict[str, int] = {}
    for line in _lines():
        try:
            taken = HintTaken(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue
        furthest[taken.exercise] = max(taken.hint, furthest.get(taken.exercise, 0))
    return furthest


def _lines() -> list[bytes]:
    try:
        with history_path().open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_READ_BYTES))
            return file.read(MAX_READ_BYTES).splitlines()
    except (OSError, RuntimeError):
        return []


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
