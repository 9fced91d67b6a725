"""A small class of odd hand-ins is graded twice, and ten good ones among them lose nothing; a fault is seen."""

import json
import random
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom import batch_command
from autograder.classroom.cli import main
from autograder.classroom.nbgrader import repair
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.release import release
from autograder.exercises import find, of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from benchmarks.grading import hostile_class
from benchmarks.grading.class_trials.odd_folders import modes
from benchmarks.grading.hostile_class import NAME, run

GOOD, ODD = 3, 9
GREEDY = "# greedy"


class FakeSandbox:
    """Never starts anything."""

    level, notes, has_cuda, measures = 3, ("nothing ran",), False, False


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


@pytest.fixture
def greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one hand-in of the class make a step of nbgrader ask for all memory."""
    rebuilt, make_class = repair.rebuilt, hostile_class.make_class

    def greedily_rebuilt(notebook: Mapping[str, Any]) -> Any:
        return rebuilt(notebook), bytes(1 << 45 if GREEDY in str(notebook) else 0)[0:0]

    def with_a_greedy_one(course: Course, count: int, draw: random.Random) -> Counter[str]:
        notebook = hostile_class.right_notebook(course)
        notebook["cells"][0]["source"] = GREEDY
        folder = course.submitted / "greedy" / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_text(json.dumps(notebook))
        return make_class(course, count, draw)

    monkeypatch.setattr(repair, "rebuilt", lambda notebook: greedily_rebuilt(notebook)[0])
    monkeypatch.setattr(hostile_class, "make_class", with_a_greedy_one)


@pytest.mark.usefixtures("greedy")
def test_good_hand_ins_lose_nothing_among_odd_ones_and_none_gets_a_false_zero(
    course: Course, batch: hostile_class.Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile_class, "GOOD", GOOD)
    outcome = run(course, ODD, random.Random(random.getrandbits(32)), batch)
    assert outcome.faults == []
    assert outcome.good == [GOOD, GOOD]
    assert hostile_class.marks_of(course)["greedy"] == ""
    lines = (course.journal.parent / "report" / "report.txt").read_text().splitlines()
    assert [line for line in lines if "[decide] greedy" in line and "it needed too much memory" in line.lower()]


def test_a_false_zero_and_a_missing_line_are_faults(course: Course) -> None:
    (course.submitted / "ada" / NAME).mkdir(parents=True)
    assert hostile_class._unnamed(course, {}, "") == ["'ada' has no mark and is not named"]
    assert hostile_class._unnamed(course, {"ada": ""}, "1 set aside, each for a person:\n  ada: gone") == []


def test_what_a_link_in_a_hand_in_leads_to_keeps_its_rights(tmp_path: Path) -> None:
    folder, target = tmp_path / NAME, tmp_path / "of the machine"
    folder.mkdir()
    target.mkdir(mode=0o755)
    (folder / f"{NAME}.ipynb").symlink_to(target)
    for seed in range(10):
        modes(folder, random.Random(seed))

    assert stat.S_IMODE(target.stat().st_mode) == 0o755
