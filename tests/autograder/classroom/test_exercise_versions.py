"""A record says what its marks depend on, and a report says which records are of an older exercise."""

import functools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.classroom import exercise_versions
from autograder.classroom.exercise_versions import (
    EXERCISE,
    GRADER,
    POINTS,
    TORCH,
    out_of_date,
    version_of,
)
from autograder.classroom.hand_in import HandedIn
from autograder.exercises import find, of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from tests.architecture.source_tree import ROOT
from tests.autograder.classroom.batch.test_class_run import FakeSandbox

TABLE, OTHER = "00_read_a_table", "00_doctor"
KERNEL, MISTAKES = "12_block_end_forward", "04_cost_annotator"
FOLDER = "autograder/exercises"


def _clear() -> None:
    for value in vars(exercise_versions).values():
        if isinstance(value, functools._lru_cache_wrapper):
            value.cache_clear()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    for folder in (FOLDER, "autograder/host", "autograder/worker", "autograder/protocol", "course_lib"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def after(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, str]]]:
    """Return what an exercise's version is once a text was added to a file of the course."""
    monkeypatch.setattr(exercise_versions, "_ROOT", copied)

    def changed(exercise: str, path: str, text: str) -> dict[str, str]:
        file = copied / path
        before = file.read_text()
        file.write_text(before + text)
        _clear()
        try:
            return dict(version_of(exercise))
        finally:
            file.write_text(before)

    _clear()
    yield changed
    _clear()


@pytest.mark.parametrize(
    ("exercise", "path"),
    [
        (TABLE, f"{FOLDER}/start_here/read_a_table.py"),
        (TABLE, f"{FOLDER}/hidden/start_here/read_a_table.py"),
        (KERNEL, f"{FOLDER}/row_kernel_checks.py"),
        (MISTAKES, "autograder/host/checks/known_mistakes.py"),
    ],
)
def test_a_change_of_code_is_another_version_and_a_comment_is_none(after, exercise: str, path: str) -> None:
    before = dict(version_of(exercise))
    assert after(exercise, path, "\n\n# a comment\n'a text that does nothing'\n") == before
    found = after(exercise, path, "\nTOLERANCE = 0.5\n")
    assert {part for part in found if found[part] != before[part]} == {EXERCISE}


@pytest.mark.parametrize("path", [f"{FOLDER}/start_here/doctor.py", f"{FOLDER}/hidden/start_here/doctor.py"])
def test_a_change_of_another_exercise_changes_nothing(after, path: str) -> None:
    before = dict(version_of(TABLE))
    assert after(TABLE, path, "\nTOLERANCE = 0.5\n") == before


def test_a_change_of_the_engine_is_another_version_of_the_grader_alone(after) -> None:
    before = dict(version_of(TABLE))
    assert after(TABLE, "autograder/host/judge.py", "\n# a comment\n") == before
    found = after(TABLE, "autograder/host/judge.py", "\nTOLERANCE = 0.5\n")
    assert {part for part in found if found[part] != before[part]} == {GRADER}


def test_points_and_torch_are_in_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(version_of(TABLE))
    monkeypatch.setattr(exercise_versions, "find", lambda name, **_: replace(find(name, hidden=True), points=6.0))
    monkeypatch.setattr(exercise_versions, "version", lambda _: "9.9.9+cu130")
    _clear()
    assert dict(version_of(TABLE)) == before | {POINTS: "6", TORCH: "9.9.9"}
    _clear()


def test_a_version_is_the_same_at_every_start() -> None:
    before = [version_of(name) for name in of_assignment("00")]
    _clear()
    assert [version_of(name) for name in of_assignment("00")] == before


def record(student: str, **versions: dict[str, str]) -> SubmissionRecord:
    exercises = (
        ExerciseRecord(name, "value", 0.0, 1.0, ExerciseStatus.GRADED, version=version)
        for name, version in versions.items()
    )
    return SubmissionRecord("00_start_here", student, "0", SandboxRecord(1), tuple(exercises))


def now(name: str, **changes: str) -> dict[str, str]:
    return {**version_of(name), **changes}


def said(*records: SubmissionRecord) -> list[str]:
    return [entry.sentence for entry in out_of_date(records)]


def current(student: str, **versions: dict[str, str]) -> SubmissionRecord:
    return record(student, **({name: now(name) for name in of_assignment("00")} | versions))


def test_records_of_an_older_exercise_are_counted_and_the_command_is_named() -> None:
    old = {TABLE: now(TABLE, exercise="older")}
    assert said(current("a"), current("b")) == []
    assert said(current("a"), current("b", **old), current("c", **{TABLE: now(TABLE, points="1.5")})) == [
        f"2 records are of an older {TABLE}: `autograder regrade {TABLE}` shows what would change."
    ]


def test_other_versions_of_torch_are_one_line_for_a_notebook() -> None:
    old = {name: now(name, torch="2.0.0") for name in of_assignment("00")}
    assert said(current("a", **old)) == [
        f"1 record is made with torch 2.0.0 ({version_of(TABLE)['torch']} is here): "
        "`autograder regrade 00_start_here` shows what would change."
    ]


def test_a_record_from_before_versions_were_kept_is_named_once_and_one_without_an_exercise_too() -> None:
    old: dict[str, dict[str, str]] = {name: {} for name in of_assignment("00")}
    (sentence,) = said(current("a", **old))
    assert sentence.startswith("1 record is of an unknown version")
    (sentence,) = said(record("a", **{TABLE: now(TABLE)}))
    assert sentence.startswith(f"1 record is without {OTHER}: `autograder regrade {OTHER}`")


def test_a_record_of_an_exercise_that_is_gone_is_not_out_of_date() -> None:
    assert said(current("a", **{"00_gone": {"exercise": "older"}})) == []


def test_every_hand_in_is_graded_with_its_version(tmp_path: Path) -> None:
    unreadable = HandedIn("00_start_here", "a", tmp_path, "0", reason="not a notebook")
    graded = unreadable.grade(sandbox=FakeSandbox(), seed=1)  # type: ignore[arg-type]
    assert {e.id: dict(e.version) for e in graded.exercises} == {name: now(name) for name in of_assignment("00")}
    assert SubmissionRecord.from_json(graded.to_json()) == graded
