"""What a changed exercise changes is shown first, is entered on demand, and survives a kill at any time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from autograder.classroom import batch_command, exercise_versions, hand_in, regrade
from autograder.classroom.batch import Journal, records_in
from autograder.classroom.cli import main
from autograder.classroom.exercise_versions import version_of
from autograder.classroom.nbgrader.course import Course
from autograder.exercises import find
from autograder.host.exercise import Exercise
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_changed_course import marks
from tests.autograder.classroom.nbgrader.test_cycle import ANSWER, FULL, NAME, FakeSandbox, gradebook_of

__all__ = ["base", "course", "place"]  # fixtures
OLD = find(ANSWER).points
NEW = 4.0  # for a full answer, once the exercise has changed; another one gets 1


@pytest.fixture
def asked(course: Course, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Change the exercise, and return the list of the answers that are graded with it from now on."""
    graded_texts: list[str] = []
    now = {**version_of(ANSWER), "exercise": "another"}

    def present(name: str) -> Mapping[str, str]:
        return now if name == ANSWER else version_of(name)

    def grade(exercise: Exercise, answers: Mapping[str, str], **_: Any) -> ExerciseRecord:
        graded_texts.append(answers.get(ANSWER, ""))
        points = NEW if FULL in answers.get(ANSWER, "") else 1.0
        check = CheckRecord("odd sizes", "sizes", True, CheckStatus.FAILED, 0.0, OLD, "no")
        return ExerciseRecord(exercise.id, "value", points, OLD, ExerciseStatus.GRADED, checks=(check,))

    for module in (exercise_versions, hand_in, regrade):
        monkeypatch.setattr(module, "version_of", present)
    monkeypatch.setattr(hand_in, "grade_exercise", grade)
    monkeypatch.setattr(regrade, "open_chosen", lambda _: FakeSandbox())
    return graded_texts


def of_journal(course: Course) -> dict[str, float]:
    """Return the points for the exercise in each student's last record."""
    return {r.student: e.points for r in records_in(course.journal) for e in r.exercises if e.id == ANSWER}


def test_the_table_comes_first_and_yes_enters_it(course: Course, asked: list[str], capsys) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, "bob").manual_score = 2.5
        gradebook.db.commit()
    graded(course)
    before = course.journal.read_bytes()
    capsys.readouterr()

    assert main(["regrade", ANSWER]) == 0

    shown = capsys.readouterr().out.splitlines()
    (ada,) = [line.split() for line in shown if line.startswith("ada ")]
    assert ada == ["ada", ANSWER, "6", "/", "6", "4", "/", "6", "-2", "its", "code"]
    assert any(line.startswith("bob ") and "a person's 2.5 stays" in line for line in shown)
    assert shown[-2:] == [
        "2 of 2 marks change, 0 stay.",
        f"Nothing is entered yet. This enters it: autograder regrade {ANSWER} --yes",
    ]
    assert course.journal.read_bytes() == before
    assert of_journal(course) == {"ada": OLD, "bob": 0.0}

    assert main(["regrade", ANSWER, "--yes"]) == 0

    said = capsys.readouterr().out
    assert len(asked) == 2, "what was shown is what is entered"
    assert of_journal(course) == {"ada": NEW, "bob": 1.0}
    assert {student: mark for student, (mark, _) in marks(graded(course)).items()} == {"ada": NEW, "bob": 2.5}
    assert "are of an older" not in said
    assert "4 / 6" in (course.feedback / "ada" / NAME / f"{NAME}.html").read_text()
    assert main(["regrade", ANSWER]) == 0
    assert "Nothing to grade again" in capsys.readouterr().out


def test_points_that_the_release_or_the_checks_do_not_have_are_named(course, asked, monkeypatch, capsys) -> None:
    more = replace(find(ANSWER, hidden=True), points=OLD + 2)
    monkeypatch.setattr(regrade, "find", lambda *_, **__: more)
    assert main(["regrade", ANSWER]) == 2
    assert f"{ANSWER}: is worth 8 points, its checks 6 together. Change one of them." in capsys.readouterr().err

    one = replace(more.checks[0], points=more.checks[0].points + 2)
    monkeypatch.setattr(regrade, "find", lambda *_, **__: replace(more, checks=(one, *more.checks[1:])))
    assert main(["regrade", ANSWER]) == 0
    said = capsys.readouterr().out
    assert f"The released notebook gives {ANSWER} 6 points, and it has 8 now." in said
    assert f"autograder open {NAME}, then autograder batch" in said


def test_one_student_can_be_graded_again_alone(course: Course, asked: list[str], capsys) -> None:
    assert main(["regrade", ANSWER, "bob", "--yes"]) == 0
    assert "1 record is of an older" in capsys.readouterr().out
    assert of_journal(course) == {"ada": OLD, "bob": 1.0}
    assert main(["regrade", ANSWER, "eve"]) == 2


def test_a_kill_between_two_records_or_before_the_gradebook_loses_nothing(course, asked, monkeypatch, capsys) -> None:
    append, killed = Journal.append, []

    def killed_once(self: Journal, record: Any) -> bool:
        if self.path == course.journal and not killed:
            killed.append(append(self, record))
            raise KeyboardInterrupt
        return append(self, record)

    monkeypatch.setattr(Journal, "append", killed_once)
    assert main(["regrade", ANSWER, "--yes"]) == 4
    assert sorted(of_journal(course).values()) == [0.0, NEW]
    monkeypatch.setattr(batch_command, "grade_and_tell", None)
    monkeypatch.setattr(regrade, "grade_and_tell", lambda *_: 4)
    assert main(["regrade", ANSWER, "--yes"]) == 4
    monkeypatch.undo()
    assert len(asked) == 2
    assert of_journal(course) == {"ada": NEW, "bob": 1.0}


def test_an_answer_that_the_grader_failed_on_keeps_its_mark(
    course: Course, asked: list[str], monkeypatch, capsys
) -> None:
    def fail(*_: Any, **__: Any) -> ExerciseRecord:
        raise ZeroDivisionError("an unexpected error")

    monkeypatch.setattr(hand_in, "grade_exercise", fail)
    assert main(["regrade", ANSWER, "--yes"]) == 0
    said = capsys.readouterr().out
    assert "not graded" in said
    assert "an unexpected error" in said
    assert of_journal(course) == {"ada": OLD, "bob": 0.0}


def test_a_notebooks_name_means_all_its_exercises_and_an_older_torch_is_named(
    course, asked, monkeypatch, capsys
) -> None:
    newer = {name: {**version_of(name), "torch": "9.9.9"} for name in hand_in.of_assignment(NAME)}
    for module in (exercise_versions, hand_in, regrade):
        monkeypatch.setattr(module, "version_of", lambda name: newer[name])
    assert main(["regrade", NAME]) == 0
    said = capsys.readouterr().out
    assert len(asked) == 2 * len(newer)
    assert f"torch {version_of(ANSWER)['torch']} → 9.9.9" in said


def test_checks_that_end_in_another_way_are_named() -> None:
    def record(status: CheckStatus, points: float) -> ExerciseRecord:
        check = CheckRecord("odd sizes", "sizes", True, status, points, 1.0)
        return ExerciseRecord(
            ANSWER, "value", points, 1.0, ExerciseStatus.GRADED, checks=(check,), version={"points": "1"}
        )

    before = replace(record(CheckStatus.FAILED, 0.0), version={"points": "2"})
    change = regrade.Change("ada", before, record(CheckStatus.PASSED, 1.0), None)
    assert change.why == "points 2 → 1; odd sizes: failed → passed"
    assert change.points == 1.0
