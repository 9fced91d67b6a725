"""Tell whose the hand-ins from a learning platform are, and finish nbgrader's `zip_collect` with one clear line.

The last line names each hand-in that is left out, with the reason, and then the exit status is not 0. The class report
names them too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nbgrader.api import Gradebook
from nbgrader.plugins import FileNameCollectorPlugin
from traitlets import Unicode

from autograder.classroom.nbgrader.extensions import deadlines_of
from autograder.classroom.nbgrader.left_out import LeftOut, keep_left_out
from autograder.classroom.notes import add_notes, digest_of
from autograder.classroom.platforms.platform_names import NOTEBOOK
from autograder.classroom.platforms.roster_lookup import Roster, roster_of
from autograder.classroom.platforms.upload_owners import Collected, Enclosed, collected
from autograder.classroom.status import DONE, REFUSED
from autograder.classroom.term.due_dates import enter_due_dates, in_gradebook, rules_in
from autograder.classroom.term.which_counts import not_counted, rank, time_of

EXTRACTED = "extracted"  # nbgrader's folder of unpacked files
LATE = "The platform calls it late and gives no time, so nothing was deducted for lateness."


class UploadCollector(FileNameCollectorPlugin):
    """Tell whose each unpacked notebook is, by the roster and the names that learning platforms give."""

    db_url = Unicode(help="the gradebook, whose roster maps the platform's numbers to students").tag(config=True)
    course_id = Unicode("fusion-course", help="the course's name in the gradebook").tag(config=True)
    timezone = Unicode(
        help="time zone in which the platform writes times, e.g. Europe/Berlin; else the course's, else this machine's"
    ).tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._root: Path | None = None
        self._found = Collected()
        self._unpacked: list[str] = []  # paths of the notebooks in the archive
        self._newer: list[str] = []  # students whose earlier collected hand-in is newer than the uploaded one

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return the student, the notebook and the time of an unpacked file, or None if it is left out."""
        path = Path(submitted_file)
        root = self._folder(path)
        if root != self._root or self.parent is None:  # whose a file is depends on all others
            self._root, self._found = root, self._read(root, path)
        name = path.relative_to(root).as_posix()
        if name not in self._found.students:
            return None
        student, file = self._found.students[name]
        when = self._found.times.get(name)
        time = {"timestamp": f"{when:%Y-%m-%d %H:%M:%S} UTC"} if when else {}
        return {"student_id": student, "file_id": PurePosixPath(file).stem, **time}

    def finish(self) -> int:
        """Say in one line which hand-ins were left out, and return the command's exit status."""
        if self._root is None:  # no notebook was unpacked
            self._found = self._read(self._folder(Path()), Path())
        for sentence in (*self._about_times(), *self._about_late()):
            self.log.warning(sentence)
        if self._newer:
            self.log.warning(
                "What counts more, and was handed in another way, was kept: %s.", _listed(sorted(self._newer))
            )
        lost = self.parent.extractor_plugin_inst.lost | self._found.left_out
        count = len(self._found.students)
        self._keep(lost)
        if not lost and (count or self._newer):
            self.log.info("All %d notebooks of the archive were collected.", count)
            return DONE
        named = "; ".join(f"{path!r:.120} ({why})" for path, why in sorted(lost.items()))
        self.log.error(
            "%d notebooks were collected, %d hand-ins were left out for you to decide: %s",
            count,
            len(lost),
            named or f"there was no archive in {self.parent._format_collect_path(self.parent.archive_directory)}",
        )
        return REFUSED

    def _keep(self, lost: Mapping[str, str]) -> None:
        """Keep for the class report what was left out, until it is collected or dismissed."""
        assignment, root = self.parent.coursedir.assignment_id, self._folder(Path())
        digests = {path: digest_of(root / path) for path in self._unpacked if path in lost}
        students: dict[str, list[str]] = {}  # by the digest of their notebook
        submitted = self._submitted("*").parent.parent
        for notebook in submitted.glob(f"*/{assignment}/{assignment}.ipynb") if digests else ():
            students.setdefault(digest_of(notebook), []).append(notebook.parent.parent.name)
        entries = [
            LeftOut(assignment, path, why, digests.get(path, ""), tuple(students.get(digests.get(path, ""), ())))
            for path, why in lost.items()
        ]
        archives = Path(self.parent._format_collect_path(self.parent.archive_directory)).glob("*")
        seen = (*self._unpacked, *self.parent.extractor_plugin_inst.others, *(path.name for path in archives))
        keep_left_out(Path(self.config.GradeOutsideKernel.journal).parent, assignment, entries, seen)

    def _about_times(self) -> Iterator[str]:
        """Yield a sentence about hand-ins without a time, and one about the time zone."""
        found = self._found
        without = sorted(student for path, (student, _) in found.students.items() if path not in found.times)
        if without:
            who = _listed(without) if found.times else "any hand-in"
            why = f": {found.unread[0]!r:.60} is not in English" if found.unread else ""
            yield f"The platform gives no time for {who}{why}; without one a hand-in counts as on time."
        if found.zoneless and not self._zone():
            yield "Times were read in this machine's time zone; `time_zone` in course.toml sets another."

    def _about_late(self) -> Iterator[str]:
        """Note for the class report which hand-ins the platform calls late, and yield a sentence about them."""
        found = self._found
        late = sorted(
            found.students[path][0] for path in found.late if path in found.students.keys() - found.times.keys()
        )
        for student in late:
            self._note(student, LATE)
        if late:
            yield f"The platform calls late: {_listed(late)}."

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
        self._unpacked = unpacked
        lists = (extractor.submitters, extractor.created, extractor.stamps, extractor.participants)
        found = collected([*unpacked, *extractor.others], self._roster(), Enclosed(*lists, self._zone()))
        self._leave_what_is_newer(found)
        return found

    def _leave_what_is_newer(self, found: Collected) -> None:
        """Take uploads out of `found` where a newer hand-in is there; end the command if it may replace none."""
        replaced, deadlines = [], self._deadlines({student for student, _ in found.students.values()})
        for path, (student, _) in list(found.students.items()):
            folder = self._submitted(student)
            if not folder.is_dir() or not any(folder.iterdir()):
                continue
            before, due = time_of(folder), deadlines[student]
            when = in_gradebook(found.times[path]) if path in found.times else None
            if before is None or (when is not None and rank(before, due) <= rank(when, due)):
                replaced.append(student)
                continue
            del found.students[path]
            if when is not None:
                self._newer.append(student)
                self._note(student, not_counted(when, before, due))
            else:
                has = f"{student} has a hand-in of {before:%Y-%m-%d %H:%M} UTC"
                found.left_out[path] = f"{has}, and the platform gives no time for this one; move one of them away"
        if replaced and not self.parent.force:
            self.parent.fail(f"{_listed(sorted(replaced))} handed in before; to replace that, add --force")

    def _note(self, student: str, sentence: str) -> None:
        """Note `sentence`, if it is not empty, for the class report."""
        if sentence:
            notebook = self._submitted(student) / f"{self.parent.coursedir.assignment_id}.ipynb"
            add_notes(notebook, Path(self.config.GradeOutsideKernel.quarantine), [sentence])

    def _deadlines(self, students: Iterable[str]) -> dict[str, datetime | None]:
        """Return until when each student can hand in, in UTC."""
        journal, assignment = Path(self.config.GradeOutsideKernel.journal), self.parent.coursedir.assignment_id
        with Gradebook(self.db_url, self.course_id) as gradebook:
            enter_due_dates(gradebook, rules_in(self.config))
            return deadlines_of(gradebook, journal, assignment, students)

    def _submitted(self, student: str) -> Path:
        folders = self.parent.coursedir
        return Path(folders.format_path(folders.submitted_directory, student, folders.assignment_id))

    def _zone(self) -> tzinfo | None:
        name = self.timezone or rules_in(self.config).time_zone
        try:
            return ZoneInfo(name) if name else None
        except (ZoneInfoNotFoundError, ValueError):
            self.parent.fail(f"{self.timezone!r} is not a time zone; write it as in Europe/Berlin")
            raise

    def _roster(self) -> Roster:
        if not self.db_url:
            return Roster()
        with Gradebook(self.db_url, self.course_id) as gradebook:
            return roster_of(gradebook.students)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{', '.join(names[:8])}{more}"
