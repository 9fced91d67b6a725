"""A release that fails changes nothing; an exercise can be left out of marks, and one that is gone stops no other."""

import contextlib
import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.assistants import FOR_ASSISTANTS
from autograder.classroom.batch import Journal
from autograder.classroom.nbgrader import release as release_module
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.grade import Graded
from autograder.classroom.nbgrader.release import ReleaseError, release
from autograder.course_settings import ASSISTANTS, SettingsError, read_settings
from autograder.exercises import find, of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus
from tests.autograder.classroom.nbgrader.changed_settings import with_settings
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import ANSWER, NAME, gradebook_of

__all__ = ["base", "course", "place"]  # fixtures
MOST = sum(find(name).points for name in of_assignment(NAME))


def with_source(course: Course, folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> Course:
    """Return the course with a source of its own, of one notebook whose cells were changed."""
    shutil.copytree(course.source / NAME, folder / NAME)
    path = folder / NAME / f"{NAME}.ipynb"
    notebook = json.loads(path.read_text())
    change(notebook["cells"])
    path.write_text(json.dumps(notebook))
    course.api.config.CourseDirectory.source_directory = str(folder)
    course.api.coursedir.source_directory = str(folder)
    return replace(course, source=folder)


def state(course: Course) -> tuple[dict[str, bytes], list[str]]:
    """Return all released files, and the gradebook as text."""
    files = {str(path): path.read_bytes() for path in course.release.rglob("*") if path.is_file()}
    with contextlib.closing(sqlite3.connect(course.journal.with_name("gradebook.db"))) as gradebook:
        return files, list(gradebook.iterdump())


def a_new_text(cells: list[dict[str, Any]]) -> None:
    ours = {"grade": False, "solution": False, "locked": True, "task": False, "schema_version": 3, "grade_id": "extra"}
    cells.append({"cell_type": "markdown", "id": "extra", "source": ["new"], "metadata": {"nbgrader": ours}})


def another_text(cells: list[dict[str, Any]]) -> None:
    cells[0]["source"] = ["# Another title"]


def test_a_release_that_nbgrader_refuses_changes_nothing_and_says_what_to_do(course: Course, tmp_path: Path) -> None:
    before = state(course)
    with pytest.raises(ReleaseError, match=r"students have handed it in.*`dropped` in course\.toml"):
        release(with_source(course, tmp_path / "source", a_new_text), [NAME])
    assert state(course) == before
    assert not list(course.release.parent.glob(".release.*"))


def test_a_release_that_would_leak_changes_nothing(course: Course, tmp_path: Path, monkeypatch) -> None:
    changed, before = with_source(course, tmp_path / "source", another_text), state(course)
    monkeypatch.setattr(release_module, "leaks", lambda *_: ["a solution"])
    with pytest.raises(ReleaseError, match="a solution"):
        release(changed, [NAME])
    assert state(course) == before


def test_a_release_takes_the_place_of_the_earlier_one(course: Course, tmp_path: Path) -> None:
    (course.release / NAME / "old.txt").write_text("of an earlier release")
    (course.release / "01_transformer").mkdir()
    release(with_source(course, tmp_path / "source", another_text), [NAME])
    assert "# Another title" in (course.release / NAME / f"{NAME}.ipynb").read_text()
    names = sorted(path.name for path in course.release.rglob("*") if path.name not in FOR_ASSISTANTS)
    assert names == ["01_transformer", NAME, f"{NAME}.ipynb", "README.md"]


@pytest.mark.parametrize("policy", ASSISTANTS)
def test_a_release_brings_the_courses_rule_for_assistants_into_each_folder(
    course: Course, tmp_path: Path, policy: str
) -> None:
    changed = with_source(course, tmp_path / "source", another_text)
    release(with_settings(changed, f'assistants = "{policy}"'), [NAME])
    for folder in (course.release, course.release / NAME):
        rule = (folder / "AGENTS.md").read_text()
        assert rule.startswith(f"# Rule for AI assistants: {policy.replace('-', ' ')}")
        assert "You must not" in rule
        assert "You may" in rule
        assert "\n@AGENTS.md\n" in (folder / "CLAUDE.md").read_text()


@pytest.mark.parametrize("value", ['"teach_only"', '"Teach-only"', "true", '["open"]'])
def test_a_wrong_rule_for_assistants_is_one_sentence_and_releases_nothing(course: Course, value: str) -> None:
    before = state(course)
    with pytest.raises(SettingsError) as caught:
        release(with_settings(course, f"assistants = {value}"), [NAME])
    assert "course.toml: assistants is " in str(caught.value)
    assert str(caught.value).endswith('; expected "open" or "teach-only" or "none".')
    assert "\n" not in str(caught.value)
    assert state(course) == before


def test_a_course_without_the_setting_teaches_only(course: Course) -> None:
    assert with_settings(course, "").rules().assistants == "teach-only"
    assert read_settings(course.settings.with_name("nowhere")).assistants == "teach-only"


def marks(done: Graded) -> dict[str, tuple[float, float]]:
    with done.csv.open() as file:
        return {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}


def in_report(done: Graded) -> dict[str, tuple[float, float]]:
    return {record.student: (record.points, record.max_points) for record in done.records}


def test_a_dropped_exercise_is_shown_and_counts_nothing_anywhere_until_it_counts_again(course: Course) -> None:
    own = find(ANSWER).points
    with gradebook_of(course) as gradebook:
        gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, "bob").manual_score = 2.5
        gradebook.db.commit()
    assert marks(graded(course)) == {"ada": (own, MOST), "bob": (2.5, MOST)}

    done = graded(with_settings(course, f'dropped = ["{ANSWER}"]'))

    assert marks(done) == in_report(done) == {"ada": (0.0, MOST - own), "bob": (0.0, MOST - own)}
    assert f"{ANSWER} (not counted)" in done.text
    assert "left out of the marks by course.toml" in (done.page.parent / "students").joinpath("ada.html").read_text()
    page = (course.feedback / "ada" / NAME / f"{NAME}.html").read_text()
    assert "left this exercise out of the marks" in page
    assert "6 / 6" in page

    done = graded(with_settings(course, ""))
    assert marks(done) == {"ada": (own, MOST), "bob": (2.5, MOST)}
    assert in_report(done) == marks(done)
    assert done.failures == ()


def test_a_mark_that_a_person_gave_is_in_the_report_and_a_newer_hand_in_is_listed(course: Course) -> None:
    own = find(ANSWER).points
    with gradebook_of(course) as gradebook:
        gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, "bob").manual_score = 2.5
        gradebook.db.commit()
    done = graded(course)
    assert in_report(done) == marks(done) == {"ada": (own, MOST), "bob": (2.5, MOST)}
    assert f"[know  ] bob · {ANSWER}: A person gave 2.5 in place of 0." in done.text

    ada, bob = (course.submitted / student / NAME / f"{NAME}.ipynb" for student in ("ada", "bob"))
    shutil.copy(ada, bob)
    done = graded(course)
    assert in_report(done) == marks(done) == {"ada": (own, MOST), "bob": (2.5, MOST)}
    assert (
        f"bob · {ANSWER}: A person gave 2.5 for an earlier grading, which counts; the grader gives 6 now." in done.text
    )


def test_a_release_while_an_exercise_is_dropped_does_not_count_it(course: Course) -> None:
    changed = with_settings(course, f'dropped = ["{ANSWER}"]')
    graded(changed)
    release(changed, [NAME])
    with gradebook_of(course) as gradebook:
        assert gradebook.find_assignment(NAME).max_score == MOST - find(ANSWER).points
    assert "grading metadata" not in graded(changed).text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('dropped = ["04_read_a_grap"]', "no exercise is called so; did you mean 04_read_a_graph"),
        ('dropped = "04_read_a_graph"', "expected a list"),
        ("dropt = []", "dropt is not a setting; did you mean dropped"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_entered(
    course: Course, tmp_path: Path, text: str, words: str
) -> None:
    before, changed = state(course), with_settings(with_source(course, tmp_path / "source", another_text), text)
    with pytest.raises(SettingsError, match=words):
        graded(changed)
    with pytest.raises(SettingsError, match=words):
        release(changed, [NAME])
    assert state(course) == before


def test_a_record_of_an_exercise_that_is_gone_stops_no_other(course: Course) -> None:
    with Journal(course.journal) as journal:
        for record in tuple(journal):
            gone = ExerciseRecord("04_gone", "value", 1.0, 1.0, ExerciseStatus.GRADED, version={"exercise": "older"})
            journal.append(replace(record, exercises=(*record.exercises, gone)))
    done = graded(course)
    assert done.failures == ()
    assert marks(done) == {"ada": (find(ANSWER).points, MOST), "bob": (0.0, MOST)}
