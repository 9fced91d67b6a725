"""Keep each hand-in of a student, and find the best of them, where course.toml says `counts = "best"`.

They lie in work/tries/STUDENT/NOTEBOOK/TIME, with unchanged bytes. The best has the most points after the deduction for
lateness; late days are left out of account, since they depend on other notebooks. Of equals the newest counts.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.classroom.term.lateness import latenesses
from autograder.course_settings import Settings

FOLDER = "tries"  # in the journal's folder
TIMESTAMP = "timestamp.txt"


@dataclass(frozen=True)
class Try:
    """One hand-in of a student, and when it was handed in, in UTC."""

    folder: Path
    hand_in: HandedIn
    when: datetime | None

    @property
    def shown(self) -> str:
        """Return when it was handed in, as text."""
        return f"of {self.when:%Y-%m-%d %H:%M} UTC" if self.when else "without a time"

    def left(self, points: float, due: datetime | None, settings: Settings) -> float:
        """Return what is left of `points` after the deduction for lateness."""
        if due is None or self.when is None:
            return points
        seconds = (self.when - due).total_seconds()
        late = latenesses([("", seconds)], replace(settings, late_days=0)).get("")
        return points - (late.deducted(points) if late else 0.0)


def keep(folder: Path, tries: Path) -> None:
    """Keep a copy of the hand-in `folder`, STUDENT/NOTEBOOK, below `tries`, unless an equal one is there."""
    student, assignment = folder.parent.name, folder.name
    files = [path for path in sorted(folder.iterdir()) if stat.S_ISREG(path.lstat().st_mode)]
    content = b"\0".join(path.read_bytes() for path in files)
    when = time_of(folder)
    name = f"{when:%Y%m%dT%H%M%S}" if when else "no-time"
    to = tries / student / assignment / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    if to.is_dir():
        return
    part = to.with_name(f".{to.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for path in files:
        shutil.copy(path, part)
    part.rename(to)


def several(tries: Path, assignments: Iterable[str]) -> Iterator[list[Try]]:
    """Yield the hand-ins of each student and notebook of which there is more than one, the oldest first."""
    for student in sorted(tries.iterdir()) if tries.is_dir() else ():
        for assignment in assignments:
            folders = sorted(path for path in (student / assignment).glob("[!.]*") if path.is_dir())
            if len(folders) > 1:
                found = [Try(path, _read(path, student.name, assignment), time_of(path)) for path in folders]
                yield sorted(found, key=lambda one: (one.when is not None, one.when or datetime.min))


def best_of(group: Sequence[Try], points: Sequence[float], due: datetime | None, settings: Settings) -> Try:
    """Return the hand-in of `group`, oldest first, that keeps the most of its `points` after the late deduction.

    `due` is until when the student could hand in, in UTC.
    """
    left = [round(one.left(p, due, settings), 4) for one, p in zip(group, points, strict=True)]
    return group[max(range(len(group)), key=lambda i: (left[i], i))]


def put_back(chosen: Try, submitted: Path) -> None:
    """Put the files of a hand-in into the folder of submissions, in place of those that are there."""
    to = submitted / chosen.hand_in.student / chosen.hand_in.assignment
    part = to.with_name(f".{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(chosen.folder, part)
    shutil.rmtree(to, ignore_errors=True)
    part.rename(to)


def time_of(folder: Path) -> datetime | None:
    """Return when the hand-in in `folder` was handed in, in UTC, if it says so."""
    try:
        text = (folder / TIMESTAMP).read_text(encoding="utf-8").strip().removesuffix(" UTC")
        when = datetime.fromisoformat(text)
    except (OSError, ValueError):
        return None
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when


def _read(folder: Path, student: str, assignment: str) -> HandedIn:
    """Read the notebook in `folder`, under whatever name the student gave it if there is one only."""
    path = folder / f"{assignment}.ipynb"
    others = sorted(folder.glob("*.ipynb"))
    if not os.path.lexists(path) and len(others) == 1:
        path = others[0]
    return read_hand_in(assignment, student, path).without_notebook()
