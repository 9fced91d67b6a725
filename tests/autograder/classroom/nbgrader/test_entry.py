"""The exit status of a class: 0 with somebody graded, 4 with nobody, and 4 where the machine fails for all."""

import errno
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.classroom import batch_command
from autograder.classroom.batch import LocalEngine
from autograder.classroom.cli import main
from autograder.classroom.hand_in import HandedIn
from autograder.classroom.nbgrader import course, entry, grade
from autograder.classroom.nbgrader.course import NbgraderError
from autograder.classroom.nbgrader.grade import Graded
from autograder.classroom.nbgrader.wall import Wall
from autograder.classroom.platforms import moodle_marks
from autograder.classroom.status import CommandError

GRADED = Graded((), 0, (), 2, Path("grades.csv"), Path("index.html"), "the report")


@pytest.mark.parametrize(
    ("graded", "status", "said"),
    [
        (GRADED, 0, ""),
        (
            replace(GRADED, failures=("mallory: it broke.",)),
            0,
            "1 set aside, each for a person:\n  mallory: it broke.\n",
        ),
        (replace(GRADED, failures=("a: it broke.", "b: it broke."), marked=0), 4, "  a: it broke.\n  b: it broke.\n"),
        (replace(GRADED, marked=0), 0, ""),
    ],
    ids=["all graded", "one set aside", "nobody graded", "nothing new"],
)
def test_the_status_of_a_class(monkeypatch, capsys, graded: Graded, status: int, said: str) -> None:
    monkeypatch.setattr(course, "open_course", lambda **_: SimpleNamespace(journal=Path("journal")))
    monkeypatch.setattr(grade, "grade_course", lambda *_, **__: graded)
    monkeypatch.setattr(moodle_marks, "write_worksheets", lambda *_: [])
    monkeypatch.setattr(batch_command, "_check_usage", lambda *_: None)
    monkeypatch.setattr(batch_command, "open_chosen", lambda _: LocalEngine)
    assert main(["batch"]) == status
    assert capsys.readouterr().err.endswith(said)


def refusing(*_: object) -> None:
    raise NbgraderError("nbgrader autograde: it is so.")


@pytest.mark.parametrize("full", [False, True])
def test_a_disk_that_is_full_for_all_is_nobodys_fault(tmp_path: Path, monkeypatch, full: bool) -> None:
    work: Any = SimpleNamespace(journal=tmp_path / "journal.jsonl")
    hand_ins = [HandedIn("04_fx_capture", student, tmp_path, "0") for student in ("ada", "bob")]

    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if full:
        monkeypatch.setattr(Path, "write_bytes", write)
    with Wall(refusing) as wall:
        if full:
            with pytest.raises(CommandError, match="No space left on device"):
                entry._each(work, wall, "autograde", "Enter marks", hand_ins)
        else:
            assert len(entry._each(work, wall, "autograde", "Enter marks", hand_ins)[1]) == 2
    assert list(tmp_path.iterdir()) == []
