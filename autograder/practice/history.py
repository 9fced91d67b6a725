"""A local diary of practice: one line of JSON a check, appended in the user's state directory. Nobody else reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.host.records import ExerciseRecord

MAX_READ_BYTES = 8 * 2**20  # about 60,000 checks; of a longer file the newest part is read


@dataclass(frozen=True)
class Attempt:
    """One call of `check`: when, which exercise, and what the visible checks gave."""

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


def history_path() -> Path:
    """Where the diary lies: ``$XDG_STATE_HOME/fusion-course/practice.jsonl``, by default under ``~/.local/state``."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".local" / "state"
    return base / "fusion-course" / "practice.jsonl"


def remember(record: ExerciseRecord) -> None:
    """Append one attempt. A full or read-only disk loses the line and nothing else: a check still shows its result."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    attempt = Attempt(now, record.id, record.points, record.max_points, record.status.value)
    line = json.dumps(asdict(attempt), separators=(",", ":")) + "\n"
    try:
        path = history_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            torn = file.tell() > 0 and not _ends_with_newline(path)
            file.write(("\n" * torn + line).encode())
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return


def attempts() -> Iterator[Attempt]:
    """Every attempt that can be read, oldest first; lines that are torn or foreign are passed over."""
    try:
        with history_path().open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_READ_BYTES))
            lines = file.read(MAX_READ_BYTES).splitlines()
    except (OSError, RuntimeError):
        return
    for line in lines:
        try:
            yield Attempt(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
