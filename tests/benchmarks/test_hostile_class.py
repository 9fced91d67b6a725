"""A small class of odd hand-ins is graded twice, and ten good ones among them lose nothing; a fault is seen."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom import batch_command
from autograder.classroom.cli import main
from autograder.classroom.nbgrader import entry, repair
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.release import release
from autograder.classroom.nbgrader.wall import StepLimits, Wall
from autograder.exercises import find, of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from benchmarks import hostile_class
from benchmarks.hostile_class import GOOD, NAME, run

SAMPLE = 12
SLOW = "# slow"


class FakeSandbox:
    """Never starts anything."""

    level, notes, has_cuda = 3, ("nothing ran",), False


def grade_by_text(assignment: str, student: str, answers: Mapping[str, str], **rest: Any) -> SubmissionRecord:
    """Give all points to an answer that holds a line of the solution."""
    exercises = []
    for name in of_assignment(assignment):
        most, text = find(name, hidden=True).points, answers.get(name, "")
        points = most if "doctor().findings" in text or "by_users" in text else 0.0
        exercises.append(ExerciseRecord(name, "value", points, most, ExerciseStatus.GRADED))
    notes = rest["notes"]
    return SubmissionRecord(assignment, student, rest["submission_sha256"], SandboxRecord(3), tuple(exercises), notes)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_gradebooks: None) -> Course:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    monkeypatch.setattr("autograder.classroom.hand_in.grade_answers", grade_by_text)
    monkeypatch.setattr(batch_command, "open_chosen", lambda _: FakeSandbox())
    opened = open_course()
    release(opened, [NAME])
    return opened


@pytest.fixture
def batch(capfd: pytest.CaptureFixture[str]) -> hostile_class.Batch:
    def graded() -> tuple[int, str]:
        capfd.readouterr()
        status = main(["batch", "--assignment", NAME])
        return status, "".join(capfd.readouterr())

    return graded


def test_ten_good_hand_ins_lose_nothing_among_odd_ones(course: Course, batch: hostile_class.Batch) -> None:
    draw = random.Random(random.getrandbits(32))
    outcome = run(course, SAMPLE, draw, batch)
    assert outcome.faults == []
    assert outcome.good == [GOOD, GOOD]


def test_a_hand_in_that_hangs_a_step_gets_no_zero_and_the_others_get_everything(
    course: Course, batch: hostile_class.Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt = repair.rebuilt

    def slow(notebook: Mapping[str, Any]) -> Any:
        while SLOW in str(notebook):
            pass
        return rebuilt(notebook)

    def add_slow(course: Course, count: int, draw: random.Random) -> Any:
        made = make(course, count, draw)
        right = hostile_class.right_notebook(course)
        right["cells"][0]["source"] = SLOW
        hostile_class._hand_in(course, "slow", hostile_class.json.dumps(right).encode())
        return made

    make = hostile_class.make_class
    monkeypatch.setattr(hostile_class, "make_class", add_slow)
    monkeypatch.setattr(hostile_class, "GOOD", 2)
    monkeypatch.setattr(repair, "rebuilt", slow)
    monkeypatch.setattr(entry, "Wall", lambda do: Wall(do, StepLimits(cpu_s=2)))
    outcome = run(course, 0, random.Random(1), batch)
    assert outcome.faults == []
    assert (outcome.good, outcome.marked, outcome.unmarked) == ([2, 2], 2, 1)
    assert "needed more than 2 s of processor time" in (course.journal.parent / "report" / "report.txt").read_text()


def test_a_false_zero_and_a_missing_line_are_faults(course: Course) -> None:
    (course.submitted / "ada" / NAME).mkdir(parents=True)
    assert hostile_class._unnamed(course, {}, "") == ["'ada' has no mark and is not named"]
    assert hostile_class._unnamed(course, {"ada": ""}, "1 set aside, each for a person:\n  ada: gone") == []
