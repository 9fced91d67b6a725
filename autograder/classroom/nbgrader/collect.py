"""Collect hand-ins from nbgrader's exchange without trusting their content or the student's name in them.

Everybody can write into the exchange's inbound folder. nbgrader takes a hand-in's owner and time from the name of its
folder, follows links in it (a link to / never ends), and stops at the first name that it cannot parse. Here a folder
is accepted only if its owner's account may hand in for the student, and only regular files of expected names are
copied. Each problem is logged in one sentence and does not stop the other hand-ins.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import parse_utc

from autograder.classroom.nbgrader.extensions import deadlines_of
from autograder.classroom.nbgrader.quarantine import KEPT, QUIET, STUDENT
from autograder.classroom.notes import add_notes, notes_for, write_notes
from autograder.classroom.submission import MAX_NOTEBOOK_BYTES
from autograder.classroom.term.due_dates import enter_due_dates, rules_in
from autograder.classroom.term.which_counts import TIMESTAMP, in_time, not_counted, rank, time_of

Record = dict[str, Any]  # of one hand-in, as nbgrader keeps it
NOBODY = ""
MOST_FILES = 20
CLOCKS_DIFFER = timedelta(minutes=10)  # allowed difference between the student's machine and the exchange's


@dataclass(frozen=True)
class Copied:
    """The result of copying one hand-in."""

    sentences: tuple[str, ...]  # about files that were not copied
    written: datetime  # time of the last write to one of its notebooks, by the exchange's clock


class CheckedCollect(ExchangeCollect):
    """Collect hand-ins for nbgrader, from the command line and from Formgrader."""

    def init_src(self) -> None:
        """Choose the hand-in of each student that counts."""
        self._students: set[str] | None = None
        self._deadlines: dict[str, datetime | None] = {}  # by student, in UTC
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            enter_due_dates(gradebook, rules_in(self.config))
        self._all: dict[str, list[Record]] = {}
        super().init_src()
        journal, assignment = Path(self.config.GradeOutsideKernel.journal), self.coursedir.assignment_id
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            self._deadlines = deadlines_of(gradebook, journal, assignment, self._all)
        self.src_records: list[Record] = [max(records, key=self._rank) for records in self._all.values()]

    def _rank(self, record: Record) -> tuple[bool, datetime]:
        return rank(record["timestamp"], self._deadlines[record["username"]])

    def _path_to_record(self, path: str) -> Record:
        """Return student and time from a folder's name; a folder that is refused gets the student `NOBODY`."""
        folder = Path(path)
        student, claimed, refused = NOBODY, datetime.min, ""
        try:
            student, _, time, *_ = folder.name.rsplit("+", 3)
            claimed = parse_utc(time)
        except (ValueError, OverflowError, TypeError):
            refused = "its name is none that nbgrader gives"
        try:
            refused = refused or self._refusal(folder, student)
        except OSError as error:  # its owner may rename or remove it at any time
            refused = f"it could not be read ({error.strerror or error}); collect again"
        if refused:
            self.log.error("%r was left out: %s", folder.name[:160], refused)
        record = {"username": NOBODY if refused else student, "filename": folder.name, "timestamp": claimed}
        if not refused:
            self._all.setdefault(student, []).append(record)
        return record

    def _refusal(self, folder: Path, student: str) -> str:
        """Return why a hand-in is not accepted as the student's; empty if it is accepted."""
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return "it is not a folder"
        if not STUDENT.fullmatch(student):
            return f"{student!r:.80} cannot be a student's folder"
        if not self.check_owner or found.st_uid == os.geteuid():  # the collecting account may put hand-ins there
            return ""
        owner, expected = _account(found.st_uid), _uid(student)
        if expected is None and owner not in self._roster():
            return ""  # the machine's accounts are not students, e.g. behind a hub with one account for all
        if expected == found.st_uid:
            return ""
        return (
            f"it was handed in under the name {student}, but the account {owner or found.st_uid} put it there. "
            "Ask both; if it is right, copy it by hand into the folder of submissions"
        )

    def _roster(self) -> set[str]:
        if self._students is None:
            with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
                self._students = {student.id for student in gradebook.students}
        return self._students

    def copy_files(self) -> None:
        """Copy every new hand-in, each one completely or not at all."""
        new = known = 0
        for record in self.src_records:
            folder = Path(self.inbound_path, record["filename"])
            to = Path(
                self.coursedir.format_path(
                    self.coursedir.submitted_directory, record["username"], self.coursedir.assignment_id
                )
            )
            try:
                if self._is_new(to, record):
                    self._replace(folder, to, record)
                    new += 1
                else:
                    known += 1
                self._note(to, [*self._later(to)], add_notes)
            except Exception as error:  # one hand-in must not stop the others
                shutil.rmtree(_part(to), ignore_errors=True)
                self.log.error("%r was left out: %s", folder.name[:160], getattr(error, "strerror", None) or error)
        self.log.info("%s: %d hand-ins collected, %d were here already", self.coursedir.assignment_id, new, known)

    def _is_new(self, to: Path, record: Record) -> bool:
        if not to.is_dir():
            return True
        here = time_of(to)
        if here is None:
            return bool(self.update)
        return bool(self.update and self._rank(record) > self._rank({**record, "timestamp": here}))

    def _replace(self, folder: Path, to: Path, record: Record) -> None:
        part = _part(to)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        copied = copy_hand_in(folder, part)
        (part / TIMESTAMP).write_text(f"{record['timestamp'].isoformat(sep=' ')} UTC")  # the time that was checked
        if to.is_dir():
            shutil.rmtree(to)
        part.rename(to)
        late = self._too_late(copied.written, record["username"], record["timestamp"])
        self._note(to, [*copied.sentences, *late], write_notes)

    def _note(self, to: Path, sentences: Sequence[str], write: Callable[[Path, Path, Sequence[str]], None]) -> None:
        for sentence in sentences:
            self.log.warning("%s: %s", to.parent.name, sentence)
        notebook, quarantine = to / f"{to.name}.ipynb", Path(self.config.GradeOutsideKernel.quarantine)
        if sentences or notes_for(notebook, quarantine):  # of an earlier hand-in with equal content
            write(notebook, quarantine, sentences)

    def _later(self, to: Path) -> Iterator[str]:
        """Yield a sentence if a later hand-in than the one in the folder `to` does not count, because it is late."""
        student, counts = to.parent.name, time_of(to)
        newest = max(one["timestamp"] for one in self._all[student])
        if counts and (sentence := not_counted(newest, counts, self._deadlines[student])):
            yield sentence

    def _too_late(self, written: datetime, student: str, claimed: datetime) -> Iterator[str]:
        """Yield a sentence if the student's own time in the name is before the due time, but the write time is not."""
        due = self._deadlines[student]
        if in_time(claimed, due) and not in_time(written - CLOCKS_DIFFER, due):
            yield (
                f"It says that it was handed in at {claimed:%Y-%m-%d %H:%M} UTC, and was written into the exchange at "
                f"{written:%Y-%m-%d %H:%M} UTC, after the due time."
            )


def _part(to: Path) -> Path:
    """Return where a hand-in is copied to before it takes its place."""
    return to.with_name(f".{to.name}.part")


def copy_hand_in(folder: Path, to: Path) -> Copied:
    """Copy the notebooks and nbgrader's own two files of a hand-in, but no symbolic or hard links."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        sentences, written = [], 0.0
        names = sorted(os.listdir(opened))  # noqa: PTH208  # a folder that is open, whatever its name leads to by now
        wanted = [name for name in names if name in KEPT or name.endswith(".ipynb")]
        for name in wanted[:MOST_FILES]:
            changed, refused = _copy(opened, name, to / name)
            written = max(written, changed if name.endswith(".ipynb") else 0.0)
            sentences += [f"{name!r:.80} was not collected: {refused}."] if refused else []
        others = [name for name in names if name not in wanted[:MOST_FILES] and name not in QUIET]
        if others:
            sentences.append(f"{', '.join(map(repr, others[:5]))[:300]}: not part of a hand-in, left in the exchange.")
        return Copied(tuple(sentences), datetime.fromtimestamp(written, UTC).replace(tzinfo=None))
    finally:
        os.close(opened)


def _copy(folder: int, name: str, to: Path) -> tuple[float, str]:
    """Copy one file; return the time of its last write, and why it was not copied, or an empty string."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        return 0.0, "it is a link" if Path(f"/proc/self/fd/{folder}", name).is_symlink() else str(error.strerror)
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            return 0.0, "it is not a regular file"
        if found.st_nlink > 1:
            return 0.0, "the file has a second name elsewhere"
        if found.st_uid != os.fstat(folder).st_uid:
            return 0.0, f"it belongs to the account {_account(found.st_uid) or found.st_uid}"
        to.write_bytes(file.read(MAX_NOTEBOOK_BYTES + 1))  # one byte too long is refused when it is read
        return found.st_ctime, ""


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _uid(account: str) -> int | None:
    try:
        return pwd.getpwnam(account).pw_uid
    except KeyError:
        return None
