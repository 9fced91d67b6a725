"""Import the archive of a learning platform: `nbgrader zip_collect` with both of its steps made safe.

It parses file names from Canvas and Moodle, with or without a file number, and finds the students by the roster's
`lms_user_id`. Only notebooks are unpacked, within size limits; archives inside an archive are not opened.
"""

import re
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import Int, Unicode

from autograder.classroom.nbgrader.quarantine import STUDENT

EXTRACTED = "extracted"  # nbgrader's folder of unpacked files
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?:LATE_)?(?P<number>\d+)_\d+_(?P<file>[^/.][^/]*?)(?:-(?P<again>\d+))?\.ipynb")
MOODLE = re.compile(r"(?P<name>[^_/]+)_(?P<number>\d+)_assignsubmission_file_?/?(?P<file>[^/.][^/]*)\.ipynb")
PLAIN = re.compile(r"(?P<name>[^/]+)/(?P<file>[^/.][^/]*)\.ipynb")


class NotebookExtractor(ExtractorPlugin):
    """Unpack notebooks from the archives of `nbgrader zip_collect`, and nothing else."""

    member_bytes = Int(100 * 2**20, help="size of a notebook, in bytes, above which it is left out").tag(config=True)
    total_bytes = Int(8 * 2**30, help="bytes that all notebooks of an archive may have").tag(config=True)

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack every archive in `archive_path` into `extracted_path`, and copy single notebooks."""
        for path in sorted(Path(archive_path).iterdir()):
            if path.suffix == ".zip":
                self._unpack(path, Path(extracted_path))
            elif path.suffix == ".ipynb" and path.is_file() and not path.is_symlink():
                (Path(extracted_path) / path.name).write_bytes(path.read_bytes())
            else:
                self.log.warning("%s is neither a notebook nor a zip archive; it was left out", path.name)
        self._keep_newest(Path(extracted_path))

    def _keep_newest(self, folder: Path) -> None:
        """Keep only the last of the files that Canvas numbers because they were handed in again."""
        newest: dict[tuple[str, str], tuple[int, Path]] = {}
        for path in sorted(folder.glob("*.ipynb")):  # not in subfolders, where students choose the file names
            if match := CANVAS.fullmatch(path.name):
                key, again = (match["number"], match["file"]), int(match["again"] or 0)
                older = min((again, path), newest.get(key, (again, path)))
                newest[key] = max((again, path), newest.get(key, (again, path)))
                if older != newest[key]:
                    self.log.info("%s was handed in again as %s", older[1].name, newest[key][1].name)
                    older[1].unlink()

    def _unpack(self, archive: Path, folder: Path) -> None:
        left = self.total_bytes
        try:
            with zipfile.ZipFile(archive) as opened:
                for member, to in self._notebooks(opened, folder):
                    size = self._copy(opened, member, to, min(left, self.member_bytes))
                    left -= size
        except Exception as error:  # zipfile has more errors than it names; the other archives are unpacked
            told = "" if isinstance(error, zipfile.BadZipFile) else f" ({type(error).__name__}: {error})"
            self.log.error("%s is not a zip archive or is damaged%s; download it again", archive.name, told)

    def _notebooks(self, opened: zipfile.ZipFile, folder: Path) -> Iterator[tuple[zipfile.ZipInfo, Path]]:
        for member in opened.infolist():
            name = PurePosixPath(member.filename)
            if member.is_dir() or "__MACOSX" in name.parts:
                continue
            linked = member.external_attr >> 16 & 0o170000 == 0o120000
            if name.suffix != ".ipynb" or name.is_absolute() or ".." in name.parts or linked:
                self.log.warning("%.99r in the archive is not a notebook; it was left out", member.filename)
                continue
            yield member, folder.joinpath(*name.parts)

    def _copy(self, opened: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path, most: int) -> int:
        """Unpack one member and return its size; the size stated in the archive is not trusted."""
        try:
            with opened.open(member) as source:
                content = source.read(most + 1)
        except Exception as error:  # of zipfile, of any method of compression, or of the disk
            self.log.error("%.99r in the archive cannot be unpacked (%s); it was left out", member.filename, error)
            return 0
        if len(content) > most:
            self.log.error("%.99r has more than %d bytes; it was left out", member.filename, most)
            return 0
        try:  # a name chosen by a student may be too long, or be used for both a file and a folder
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self.log.error("%.99r in the archive has no place (%s); it was left out", member.filename, why)
        return len(content)


class UploadCollector(FileNameCollectorPlugin):
    """Read student and notebook from the file names of Canvas and Moodle, or from `STUDENT/NOTEBOOK.ipynb`."""

    db_url = Unicode(help="the gradebook, whose roster maps the platform's numbers to students").tag(config=True)
    course_id = Unicode("fusion-course", help="the course's name in the gradebook").tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._seen: set[tuple[str, str]] = set()

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Read off a file's path whose submission it is: return the ids of the student and of the notebook.

        If the file is to be left out, log a warning and return None.
        """
        parts = Path(submitted_file).parts
        last, two = parts[-1], "/".join(parts[-2:])
        if parts[-2] == EXTRACTED:
            match = CANVAS.fullmatch(last) or MOODLE.fullmatch(last)
        else:  # use the folder's name for the student, because students choose the name of the file in it
            match = MOODLE.fullmatch(two) or PLAIN.fullmatch(two)
        if match is None:
            self.log.warning("%s: no student can be read off this name; it was left out", submitted_file)
            return None
        found = match.groupdict()
        named = unicodedata.normalize("NFC", found["name"])  # macOS decomposes letters with accents
        student = self._students().get(found.get("number") or "", named)
        if not STUDENT.fullmatch(student) or (student, found["file"]) in self._seen:
            why = "it is there twice" if STUDENT.fullmatch(student) else f"{student!r} cannot be a student's folder"
            self.log.warning("%s was left out: %s", submitted_file, why)
            return None
        self._seen.add((student, found["file"]))
        return {"student_id": student, "file_id": found["file"]}

    def _students(self) -> dict[str, str]:
        if not self.db_url:
            return {}
        with Gradebook(self.db_url, self.course_id) as gradebook:
            return {student.lms_user_id: student.id for student in gradebook.students if student.lms_user_id}
