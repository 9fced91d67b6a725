"""Import the archive of a learning platform: `nbgrader zip_collect` with both of its steps made safe.

Only notebooks are unpacked, within size limits; archives inside an archive are not opened. The last line names each
hand-in that is left out, with the reason, and then the exit status is not 0.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import Int, Unicode

from autograder.classroom.nbgrader.quarantine import QUIET
from autograder.classroom.platform_names import NOTEBOOK, Collected, collected
from autograder.classroom.roster_lookup import Listed, Roster
from autograder.classroom.status import DONE, REFUSED

EXTRACTED = "extracted"  # nbgrader's folder of unpacked files
SUBMITTERS = "submission_metadata.yml"  # Gradescope's list of who handed in what
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

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive in `archive_path` into `extracted_path`, and copy single notebooks."""
        for path in sorted(Path(archive_path).iterdir()):
            if path.suffix == ".zip":
                self._unpack(path, Path(extracted_path))
            elif path.suffix == NOTEBOOK and path.is_file() and not path.is_symlink():
                (Path(extracted_path) / path.name).write_bytes(path.read_bytes())
            elif path.name not in QUIET:
                self._leave_out(path.name, "it is neither a notebook nor a zip archive")

    def _leave_out(self, name: str, why: str) -> None:
        self.lost[name] = why
        self.log.warning("%.99r was left out: %s", name, why)

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
        """Unpack a notebook and return its size; read Gradescope's list, and note the names of other files."""
        if to.name == SUBMITTERS:
            where = to.parent.relative_to(folder)
            listed = submitters(_content(opened, member, most).decode("utf-8", "replace"))
            self.submitters |= {(where / name).as_posix(): people for name, people in listed.items()}
            return 0
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


def submitters(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the name, number and address of each person in Gradescope's list, by the submission's folder."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    folder, listed = "", False
    for line in text.splitlines():
        if line[:1] not in (" ", "-", ""):
            folder, listed = line.rstrip(": "), False
        elif line.startswith("  :"):
            listed = line.startswith("  :submitters:")
        elif listed and (said := _SUBMITTER.fullmatch(line)):
            if said["new"]:
                found[folder].append({})
            if found[folder] and said["key"] in ("name", "sid", "email"):
                found[folder][-1][said["key"]] = (said["value"] or "").strip("'\"")
    return dict(found)


class UploadCollector(FileNameCollectorPlugin):
    """Tell whose each unpacked notebook is, by the roster and the names that learning platforms give."""

    db_url = Unicode(help="the gradebook, whose roster maps the platform's numbers to students").tag(config=True)
    course_id = Unicode("fusion-course", help="the course's name in the gradebook").tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._root = Path()
        self._found = Collected()

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return the ids of the student and of the notebook of an unpacked file, or None if it is left out."""
        path = Path(submitted_file)
        root = self._folder(path)
        if root != self._root or self.parent is None:  # whose a file is depends on all others
            self._root, self._found = root, self._read(root, path)
        student, file = self._found.students.get(path.relative_to(root).as_posix(), ("", ""))
        return {"student_id": student, "file_id": PurePosixPath(file).stem} if student else None

    def finish(self) -> int:
        """Say in one line which hand-ins were left out, and return the command's exit status."""
        lost = self.parent.extractor_plugin_inst.lost | self._found.left_out
        count = len(self._found.students)
        if not lost and count:
            self.log.info("All %d notebooks of the archive were collected.", count)
            return DONE
        named = "; ".join(f"{path!r:.120} ({why})" for path, why in sorted(lost.items()))
        self.log.error(
            "%d notebooks were collected, %d hand-ins were left out: %s",
            count,
            len(lost),
            named or "there was no archive",
        )
        return REFUSED

    def _folder(self, path: Path) -> Path:
        """Return the folder of all unpacked files; outside nbgrader's command, the outermost one of its name."""
        if self.parent is not None:
            return Path(self.parent._format_collect_path(self.parent.extracted_directory))
        return next((parent for parent in reversed(path.parents) if parent.name == EXTRACTED), path.parent)

    def _read(self, root: Path, path: Path) -> Collected:
        if self.parent is None:
            return collected([path.relative_to(root).as_posix()], self._roster())
        extractor = self.parent.extractor_plugin_inst
        unpacked = [path.relative_to(root).as_posix() for path in root.rglob(f"*{NOTEBOOK}") if path.is_file()]
        return collected([*unpacked, *extractor.others], self._roster(), extractor.submitters)

    def _roster(self) -> Roster:
        if not self.db_url:
            return Roster()
        with Gradebook(self.db_url, self.course_id) as gradebook:
            return Roster(
                Listed(s.id, s.first_name or "", s.last_name or "", s.email or "", s.lms_user_id or "")
                for s in gradebook.students
            )
