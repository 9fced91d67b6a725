"""Open the course: its folders and nbgrader's interface to them, as nbgrader_config.py sets them."""

import copy
import re
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy.exc import SAWarning
from traitlets.config.loader import PyFileConfigLoader

from autograder.classroom.nbgrader.hooks import kept_engine
from autograder.classroom.status import CommandError, UsageError
from autograder.course_settings import Settings, SettingsError, nearest, read_settings

CONFIG = "nbgrader_config.py"
_FORCED = ("generate_assignment", "autograde", "generate_feedback")  # the other steps overwrite without being asked
# the last line of a traceback: libraries write their errors' modules before the names, and Python only the names
_ERROR = re.compile(r"^[^\S\n]*((?:\w+\.)+\w+|\w+(?:Error|Exception)): (.+)$", re.MULTILINE)
_MEMORY = re.compile(r"^[^\S\n]*MemoryError$", re.MULTILINE)


class NbgraderError(CommandError):
    """A step of nbgrader failed; the message ends with nbgrader's own message."""


@dataclass(frozen=True)
class Course:
    """The folders of a course. The students' folders are below `submitted`, `autograded` and `feedback`."""

    source: Path
    release: Path
    submitted: Path
    autograded: Path
    feedback: Path
    journal: Path
    seed_file: Path
    quarantine: Path  # files that were moved out of submitted/, with unchanged bytes
    settings: Path  # course.toml
    api: NbGraderAPI = field(repr=False, compare=False)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the source folders that contain a notebook of the same name."""
        return tuple(sorted(p.parent.name for p in self.source.glob("*/*.ipynb") if p.stem == p.parent.name))

    @property
    def assignments(self) -> tuple[str, ...]:
        """Return the notebooks of the course, in order: those that course.toml lists, or else all sources."""
        return self.rules().notebooks or self.sources

    def rules(self) -> Settings:
        """Return the settings in course.toml; raises `SettingsError` if one is wrong."""
        rules = read_settings(self.settings)
        for setting, names in (("notebooks", rules.notebooks), ("due", rules.due)):
            for name in names:
                if name not in self.sources:
                    hint = nearest(name, self.sources)
                    raise SettingsError(
                        f"{self.settings}: {setting} names {name!r}, and no notebook is called so{hint}"
                    )
        return rules

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return `names`, or all assignments if it is empty; raises `UsageError` for an unknown assignment."""
        assignments = self.assignments
        for name in names:
            if name in self.sources and name not in assignments:
                raise UsageError(f"{name} is not among `notebooks` in {self.settings}, so the course does not use it.")
            if name not in assignments:
                raise UsageError(f"no assignment is called {name!r}; there are {', '.join(assignments)}.")
        return tuple(names) or assignments

    def gradebook(self) -> Gradebook:
        """Open nbgrader's database of this course."""
        return Gradebook(self.api.coursedir.db_url, self.api.coursedir.course_id)

    def elsewhere(self, release: Path, db_url: str = "") -> "Course":
        """Return this course with another folder of released notebooks and, if `db_url` is given, another gradebook."""
        config = copy.deepcopy(self.api.config)
        config.CourseDirectory.release_directory = str(release)
        config.CourseDirectory.db_url = db_url or self.api.coursedir.db_url
        return replace(self, release=release, api=NbGraderAPI(config=config))

    def do(self, step: str, *arguments: str) -> str:
        """Run one step of nbgrader, overwrite the output of an earlier run, and return the log.

        Raises `NbgraderError` with the error in the log or, if there is none, with the last lines of the log.
        """
        with kept_engine(), quiet_additions():
            answer = getattr(self.api, step)(*arguments, **({"force": True} if step in _FORCED else {}))
        if not answer["success"]:
            log = answer.get("log", "") or answer.get("error", "")
            if _MEMORY.search(log):
                raise MemoryError  # it has no message of its own
            # the last error in the log except nbgrader's final one, or the last lines if there is no such error
            errors = [text for name, text in _ERROR.findall(log) if not name.endswith("NbGraderException")]
            said = errors[-1] if errors else "\n".join(log.strip().splitlines()[-12:])
            raise NbgraderError(f"nbgrader {step} {' '.join(arguments)}: {said}")
        return str(answer.get("log", ""))


def gradebook_copy(course: Course, path: Path) -> str:
    """Copy the gradebook, if there is one yet, to the file `path`, and return the address of the copy."""
    address = "sqlite:///"
    original = Path(course.api.coursedir.db_url.removeprefix(address))
    if original.is_file():
        with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
    return f"{address}{path}"


@contextmanager
def quiet_additions() -> Iterator[None]:
    """Let nbgrader add each new submission to two collections, about whose order SQLAlchemy warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        yield


def open_course(root: Path | None = None, *, submitted: Path | None = None) -> Course:
    """Return the course whose nbgrader_config.py is in `root`, by default the working directory, or this checkout.

    `submitted` replaces the folder of submissions that is set in that file.
    """
    here = Path.cwd() if (Path.cwd() / CONFIG).is_file() else Path(__file__).parents[3]
    config = PyFileConfigLoader(CONFIG, path=str(root or here)).load_config()
    if submitted is not None:
        config.CourseDirectory.submitted_directory = str(submitted.resolve())
    api = NbGraderAPI(config=config)
    folders = api.coursedir
    ours = config.GradeOutsideKernel
    return Course(
        source=Path(folders.root) / folders.source_directory,
        release=Path(folders.root) / folders.release_directory,
        submitted=Path(folders.root) / folders.submitted_directory,
        autograded=Path(folders.root) / folders.autograded_directory,
        feedback=Path(folders.root) / folders.feedback_directory,
        journal=Path(ours.journal),
        seed_file=Path(ours.seed_file),
        quarantine=Path(ours.quarantine),
        settings=Path(ours.settings),
        api=api,
    )
