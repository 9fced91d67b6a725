"""Remember the hand-ins that `nbgrader zip_collect` left out of a platform's archive, until a person has decided.

Each is in the class report, under "What needs a person", until the same file is collected: by the command, or by hand
into the folder of a student. `autograder left-out` lists them, and dismisses those that are not hand-ins.
"""

import argparse
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.classroom.hand_in import HandedIn
from autograder.classroom.report.attention import Attention, Urgency
from autograder.classroom.status import DONE, UsageError
from autograder.classroom.whole_files import write_whole
from autograder.host.report.safe_text import one_line

if TYPE_CHECKING:
    from autograder.classroom.nbgrader.course import Course

FILE = "left_out.json"
"""In the journal's folder."""

_ID_CHARACTERS = 12


@dataclass(frozen=True)
class LeftOut:
    """A file of an archive that no student was found for, or that could not be taken."""

    assignment: str
    path: str  # in the archive
    why: str
    sha256: str = ""  # of its bytes, if it is a notebook that was unpacked
    same: tuple[str, ...] = ()  # students who had a notebook of these bytes when it was left out
    dismissed: bool = False

    @property
    def id(self) -> str:
        """Return a short name of it for the command line."""
        name = f"{self.assignment}/{self.path}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(name).hexdigest()[:_ID_CHARACTERS]

    def is_collected(self, hand_ins: Iterable[HandedIn]) -> bool:
        """Return whether a student has this file now who had no equal one when it was left out."""
        students = {one.student for one in hand_ins if (one.assignment, one.sha256) == (self.assignment, self.sha256)}
        return bool(students - set(self.same))


def left_out(work: Path) -> tuple[LeftOut, ...]:
    """Return all that are kept in the folder `work`, the dismissed ones too."""
    path = work / FILE
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return tuple(LeftOut(**{**entry, "same": tuple(entry["same"])}) for entry in entries)


def keep_left_out(work: Path, assignment: str, lost: Iterable[LeftOut], seen: Iterable[str]) -> None:
    """Keep what one run of the command left out; what an earlier run left out stays unless its path was `seen` now.

    A dismissal holds for the file that was looked at, and not for another one at the same path.
    """
    before = {(one.assignment, one.path): one for one in left_out(work)}
    gone = {(assignment, path) for path in seen}
    new = {(one.assignment, one.path): one for one in lost}
    dismissed = {(one.assignment, one.path, one.sha256, one.why) for one in before.values() if one.dismissed}
    kept = {key: one for key, one in before.items() if key not in gone}
    again = {
        key: replace(one, dismissed=(*key, one.sha256, one.why) in dismissed or one.dismissed)
        for key, one in new.items()
    }
    _write(work, {**kept, **again})


def to_decide(course: "Course", hand_ins: Collection[HandedIn], chosen: Collection[str]) -> Iterator[Attention]:
    """Yield an entry of the class report for each that is neither collected nor dismissed."""
    for one in left_out(course.journal.parent):
        if one.assignment in chosen and not one.dismissed and not one.is_collected(hand_ins):
            place = course.submitted / "STUDENT" / one.assignment
            sentence = (
                f"`zip_collect` left it out: {one.why}. Copy it by hand into {place}, or dismiss it: "
                "`autograder left-out`."
            )
            yield Attention(Urgency.MUST, one.path, one.assignment, sentence)


def add_left_out(commands: Any) -> None:
    """Add the command to the command line's `commands`."""
    parser = commands.add_parser("left-out", help="hand-ins that zip_collect left out, until they are decided")
    told = "these are not hand-ins; leave them out of the report"
    parser.add_argument("--dismiss", nargs="+", default=[], metavar="ID", help=told)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from autograder.classroom.nbgrader.course import open_course

    work = open_course().journal.parent
    entries = left_out(work)
    if unknown := [name for name in options.dismiss if name not in {one.id for one in entries}]:
        raise UsageError(f"nothing that was left out has the id {unknown[0]!r:.40}; `autograder left-out` lists them.")
    if options.dismiss:
        entries = tuple(replace(one, dismissed=one.dismissed or one.id in options.dismiss) for one in entries)
        _write(work, {(one.assignment, one.path): one for one in entries})
    waiting = [one for one in entries if not one.dismissed]
    for one in waiting:
        print(f"{one.id}  {one.assignment}  {one_line(one.path, limit=200)} ({one_line(one.why, limit=300)})")
    if not waiting:
        print("Nothing is left out.")
    return DONE


def _write(work: Path, entries: Mapping[tuple[str, str], LeftOut]) -> None:
    kept = [asdict(one) for _, one in sorted(entries.items())]
    write_whole(work / FILE, json.dumps(kept, indent=1))
