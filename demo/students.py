"""Play the students' side of nbgrader's exchange and of a learning platform."""

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchFeedback, ExchangeSubmit
from traitlets.config import Config

from autograder.classroom.nbgrader.course import Course

_CACHE = ".nbgrader_cache"  # where a student's nbgrader keeps what it handed in


def hand_over(course: Course, home: Path, assignment: str) -> None:
    """Hand in the folder in `home`; by hand if it holds links, since nbgrader would copy what they lead to."""
    linked = any(path.is_symlink() for path in (home / assignment).iterdir())
    (put_as_it_is if linked else submit)(course, home, assignment)


def submit(course: Course, home: Path, assignment: str) -> None:
    """Do what `nbgrader submit` does for the student whose folder is `home`."""
    config = _config(course, home, assignment)
    ExchangeSubmit(coursedir=CourseDirectory(config=config), authenticator=Authenticator(), config=config).start()


def put_as_it_is(course: Course, home: Path, assignment: str) -> None:
    """Put a folder with its links into the exchange by hand, as anyone may who can write there."""
    inbound = Path(course.api.config.Exchange.root) / course.api.coursedir.course_id / "inbound"
    name = f"{home.name}+{assignment}+{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC+by-hand"
    shutil.copytree(home / assignment, inbound / name, symlinks=True)


def can_ask(home: Path, assignment: str) -> bool:
    """Tell whether the student's nbgrader can ask for feedback: it does so by a notebook that it handed in."""
    return any((home / _CACHE).glob(f"*/*+{assignment}+*/*.ipynb"))


def fetch_feedback(course: Course, home: Path, assignment: str) -> list[Path]:
    """Do what `nbgrader fetch_feedback` does, and return the pages that arrived."""
    config = _config(course, home, assignment)
    folder = CourseDirectory(config=config)
    ExchangeFetchFeedback(coursedir=folder, authenticator=Authenticator(), config=config).start()
    return sorted((home / assignment / "feedback").glob("*/*.html"))


def upload(archive: Path, homes: Iterable[Path], assignment: str, numbers: Mapping[str, int]) -> None:
    """Make the archive that Canvas gives of all that was uploaded; `numbers` are the platform's own."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for place, home in enumerate(homes):
            for path in sorted((home / assignment).glob("*.ipynb")):
                letters = "".join(filter(str.isalnum, home.name))  # Canvas writes a name without anything else
                opened.write(path, f"{letters}_{numbers[home.name]}_{7000 + place}_{path.name}")


def _config(course: Course, home: Path, assignment: str) -> Config:
    config = Config()
    config.Exchange.root = course.api.config.Exchange.root
    config.Exchange.assignment_dir = str(home)
    config.Exchange.cache = str(home / _CACHE)
    config.CourseDirectory.course_id = course.api.coursedir.course_id
    config.CourseDirectory.student_id = home.name
    config.CourseDirectory.assignment_id = assignment
    return config
