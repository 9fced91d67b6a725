"""A made-up class through the whole cycle: in by exchange and upload, marks as stated, feedback back to each."""

import csv
import logging
import os
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.exercises import find, of_assignment
from demo import __main__ as command
from demo import afternoon
from demo.generated import OF_SIXTY, SMALLEST, TooSmallError, generated_class
from tests.autograder.classroom.pages.page_scan import pages_that_load_or_run
from tests.autograder.host.forked_command import fork_command

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "submissions"
NAME = "00_start_here"


def test_a_class_of_sixty_has_everything_and_is_the_same_each_time():
    members = generated_class(NAME, 60, answers=ANSWERS)

    kinds = Counter(member.kind for member in members)
    assert kinds == {**OF_SIXTY, "full": 60 - sum(OF_SIXTY.values())}
    assert len({member.name for member in members}) == 60
    assert members == generated_class(NAME, 60, answers=ANSWERS)
    assert members != generated_class(NAME, 60, answers=ANSWERS, seed=2)


@pytest.mark.parametrize("size", [SMALLEST, 17, 23, 300])
def test_a_class_of_any_size_has_one_of_each_kind(size):
    members = generated_class(NAME, size, answers=ANSWERS)

    assert len(members) == size
    assert {member.kind for member in members} == {"full", *OF_SIXTY}


def test_a_class_that_is_too_small_is_refused():
    with pytest.raises(TooSmallError, match=f"{SMALLEST} kinds"):
        generated_class(NAME, SMALLEST - 1, answers=ANSWERS)


@pytest.fixture
def quiet_log():
    """Have nbgrader's log as loud again as it was; the command makes it quiet."""
    log = logging.getLogger("traitlets")
    level = log.level
    yield
    log.setLevel(level)


def run_forked(command, *, cwd, **others):
    """Run a command of nbgrader to its end without waiting for its imports."""
    status, said = fork_command(command[1:], cwd, os.environ).finish()
    return subprocess.CompletedProcess(command, status, said, said)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_gradebooks", "quiet_log")
def test_a_small_class_has_its_afternoon(tmp_path, monkeypatch, capsys):
    for name in ("COURSE_WORK", "COURSE_EXCHANGE"):  # which it sets, and which are to be as they were
        monkeypatch.setenv(name, str(tmp_path / "work"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(afternoon, "subprocess", SimpleNamespace(run=run_forked))
    status = command.main(["afternoon", "--students", str(SMALLEST), "--work", str(tmp_path / "work")])

    said = capsys.readouterr()
    assert status == 0, said.out + said.err
    assert "every mark is as stated" in said.out
    with (tmp_path / "work" / "grades.csv").open() as file:
        marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert (len(marks), marks["full_01"], marks["absent_01"]) == (
        SMALLEST,
        sum(find(e).points for e in of_assignment(NAME)),
        0.0,
    )
    assert "absent_01" in (tmp_path / "work" / "report" / "report.txt").read_text()
    assert pages_that_load_or_run(tmp_path) == {}
