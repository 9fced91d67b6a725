"""Unpack what a learning platform gives: notebooks, within size limits, and the platform's own lists.

Archives inside an archive are not opened.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from nbgrader.plugins import ExtractorPlugin
from traitlets import Int

from autograder.classroom.nbgrader.quarantine import QUIET
from autograder.classroom.platforms.moodle_worksheet import Participant, WorksheetError, read_worksheet
from autograder.classroom.platforms.platform_names import NOTEBOOK
from autograder.classroom.term.which_counts import SMALL_BYTES, TIMESTAMP

SUBMITTERS = "submission_metadata.yml"  # Gradescope's list of who handed in what
_CREATED = "  :created_at:"
_SUBMITTER = re.compile(r"  (?:(?P<new>- )|  ):(?P<key>\w+):(?: (?P<value>.*))?")


class NotebookExtractor(ExtractorPlugin):
    """Unpack notebooks from the archives of `nbgrader zip_collect`, and nothing else."""

    member_bytes = Int(100 * 2**20, help="size of a notebook, in bytes, above which it is left out").tag(config=True)
    total_bytes = Int(8 * 2**30, help="bytes that all notebooks of an archive may have").tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.others: list[str] = []  # members that are no notebooks
        self.lost: dict[str, str] = {}  # what could not be unpacked, with the reason
        self.submitters: dict[str, list[dict[str, str]]] = {}  # by Gradescope's folder
        self.created: dict[str, str] = {}  # times in Gradescope's list, by its folder
        self.stamps: dict[str, str] = {}  # what files with a time hold, by their folder
        self.participants: dict[str, Participant] = {}  # of Moodle's worksheets, by number

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive in `archive_path` into `extracted_path`, and copy single notebooks."""
        for path in sorted(Path(archive_path).iterdir()):
            if path.suffix == ".zip":
                self._unpack(path, Path(extracted_path))
            elif path.suffix == NOTEBOOK and path.is_file() and not path.is_symlink():
                (Path(extracted_path) / path.name).write_bytes(path.read_bytes())
            elif path.suffix == ".csv":
                self._read_worksheet(path)
            elif path.name not in QUIET:
                self._leave_out(path.name, "it is neither a notebook nor a zip archive")

    def _leave_out(self, name: str, why: str) -> None:
        self.lost[name] = why
        self.log.warning("%.99r was left out: %s", name, why)

    def _read_worksheet(self, path: Path) -> None:
        try:
            self.participants |= read_worksheet(path).participants
        except WorksheetError as error:
            self._leave_out(path.name, str(error).rstrip("."))

    def _unpack(self, archive: Path, folder: Path) -> None:
        left = self.total_bytes
        try:
            with zipfile.ZipFile(archive) as opened:
                for member, to in self._members(opened, folder):
                    try:
                        left -= self._take(opened, member, to, folder, min(left, self.member_bytes))
                    except _LeftOutError as error:
                        self._leave_out(member.filename, str(error))
        except Exception as error:  # zipfile has more errors than it names; the other archives are unpacked
            told = "" if isinstance(error, zipfile.BadZipFile) else f" ({type(error).__name__}: {error})"
            self._leave_out(archive.name, f"it is not a zip archive or is damaged{told}; download it again")

    def _members(self, opened: zipfile.ZipFile, folder: Path) -> Iterator[tuple[zipfile.ZipInfo, Path]]:
        for member in opened.infolist():
            name = PurePosixPath(member.filename)
            if member.is_dir() or not QUIET.isdisjoint(name.parts):
                continue
            linked = member.external_attr >> 16 & 0o170000 == 0o120000
            if name.is_absolute() or ".." in name.parts or linked:
                self._leave_out(member.filename, "it is a link, or leads out of the archive")
                continue
            yield member, folder.joinpath(*name.parts)

    def _take(self, opened: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path, folder: Path, most: int) -> int:
        """Unpack a notebook and return its size; read the platform's lists, and note the names of other files."""
        where = to.parent.relative_to(folder)
        if to.name == SUBMITTERS:
            listed, created = submitters(_content(opened, member, most).decode("utf-8", "replace"))
            self.submitters |= {(where / name).as_posix(): people for name, people in listed.items()}
            self.created |= {(where / name).as_posix(): time for name, time in created.items()}
            return 0
        if to.name == TIMESTAMP and member.file_size <= SMALL_BYTES:
            self.stamps[where.as_posix()] = _content(opened, member, SMALL_BYTES).decode("utf-8", "replace").strip()
        if to.suffix != NOTEBOOK:
            self.others.append(member.filename)
            return 0
        content = _content(opened, member, most)
        try:  # a name chosen by a student may be too long, or be used for both a file and a folder
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
        except (OSError, ValueError) as error:
            raise _LeftOutError(f"it has no place ({getattr(error, 'strerror', None) or error})") from error
        return len(content)


class _LeftOutError(Exception):
    """A member of an archive is left out; the message says why."""


def _content(opened: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """Return the bytes of a member; the size stated in the archive is not trusted."""
    try:
        with opened.open(member) as source:
            content = source.read(most + 1)
    except Exception as error:  # of zipfile, of any method of compression, or of the disk
        raise _LeftOutError(f"it cannot be unpacked ({error})") from error
    if len(content) > most:
        raise _LeftOutError(f"it has more than {most} bytes")
    return content


def submitters(text: str) -> tuple[dict[str, list[dict[str, str]]], dict[str, str]]:
    """Return the name, number and address of each person in Gradescope's list, and each time, by submission."""
    people: dict[str, list[dict[str, str]]] = defaultdict(list)
    times: dict[str, str] = {}
    folder, listed = "", False
    for line in text.splitlines():
        if line[:1] not in (" ", "-", ""):
            folder, listed = line.rstrip(": "), False
        elif line.startswith("  :"):
            listed = line.startswith("  :submitters:")
            if line.startswith(_CREATED):
                times[folder] = line.removeprefix(_CREATED).strip(" '\"")
        elif listed and (said := _SUBMITTER.fullmatch(line)):
            if said["new"]:
                people[folder].append({})
            if people[folder] and said["key"] in ("name", "sid", "email"):
                people[folder][-1][said["key"]] = (said["value"] or "").strip("'\"")
    return dict(people), times
