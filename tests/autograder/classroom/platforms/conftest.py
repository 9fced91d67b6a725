"""A course with a roster of three, for the tests of what platforms give and take."""

import logging
import shutil
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.roster import import_roster

ROSTER = "id,first_name,last_name,email,lms_user_id\nada,Ada,L,a@x.org,1234\nbob,,,,77\ncleo,,,,\n"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Path:
    """What belongs to a course with a roster, made once."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "roster.csv").write_text(ROSTER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_WORK", str(folder / "work"))
        assert import_roster(open_course(), folder / "roster.csv") == 3
    return folder / "work"


@pytest.fixture
def course(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of this test's own."""
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    shutil.copytree(work, tmp_path / "work")
    return open_course()


@pytest.fixture
def log() -> logging.Logger:
    logger = logging.getLogger("platforms")
    logger.propagate = True
    return logger
