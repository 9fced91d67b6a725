"""The history of practice survives damage to its file, and progress shows the best result of each exercise."""

from pathlib import Path

import pytest

from autograder.host.records import ExerciseRecord, ExerciseStatus
from autograder.practice import history
from autograder.practice.history import Attempt, attempts, history_path, remember
from autograder.practice.progress_summary import Progress, summarise

BROKEN_LINES = (
    b"",
    b"{",
    b"[1, 2]",
    b"null",
    b"\xff\xfe\x00",
    b'{"time": "t", "exercise": "01_a"}',
    b'{"time": "t", "exercise": 3, "points": 1, "max_points": 2, "status": "graded"}',
    b'{"time": "t", "exercise": "01_a", "points": 9, "max_points": 2, "status": "graded"}',
    b'{"time": "t", "exercise": "01_a", "points": NaN, "max_points": 2, "status": "graded"}',
    b'{"time": "t", "exercise": "01_a", "points": "one", "max_points": 2, "status": "graded"}',
    b'{"time": "t", "exercise": "01_a", "points": 1, "max_points": 2, "status": "graded", "more": 1}',
    b"[" * 100_000,
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def record(points: float, exercise: str = "01_a", max_points: float = 4) -> ExerciseRecord:
    return ExerciseRecord(exercise, "value", points, max_points, ExerciseStatus.GRADED)


def attempt(exercise: str, points: float, time: str = "2026-01-02T03:04:05+00:00") -> Attempt:
    return Attempt(time, exercise, points, 4, "graded")


def test_without_a_history_there_are_no_attempts() -> None:
    assert list(attempts()) == []


def test_an_attempt_is_read_as_it_was_stored() -> None:
    remember(record(1.5))
    remember(record(4))
    assert [(a.exercise, a.points, a.max_points, a.status) for a in attempts()] == [
        ("01_a", 1.5, 4, "graded"),
        ("01_a", 4, 4, "graded"),
    ]


@pytest.mark.parametrize("line", BROKEN_LINES, ids=lambda line: repr(line[:40]))
def test_a_broken_line_is_skipped_and_the_others_are_kept(line: bytes) -> None:
    remember(record(1))
    with history_path().open("ab") as file:
        file.write(line + b"\n")
    remember(record(2))
    assert [a.points for a in attempts()] == [1, 2]


def test_a_line_cut_by_a_crash_does_not_damage_the_next() -> None:
    remember(record(1))
    with history_path().open("ab") as file:
        file.write(b'{"time": "2026')
    remember(record(2))
    assert [a.points for a in attempts()] == [1, 2]


def test_the_newest_part_of_a_huge_history_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for points in (1, 2, 3):
        remember(record(points))
    monkeypatch.setattr(history, "MAX_READ_BYTES", history_path().stat().st_size // 2)
    assert [a.points for a in attempts()] == [3]


def test_a_read_only_folder_loses_only_the_line(own_state: Path) -> None:
    (own_state / "fusion-course").write_text("a file where the folder should be")
    remember(record(1))
    assert list(attempts()) == []


def test_a_relative_state_folder_is_ignored_as_the_standard_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_path() == tmp_path / ".local" / "state" / "fusion-course" / "practice.jsonl"


def test_progress_shows_the_best_try_and_counts_all() -> None:
    tried = [attempt("01_a", 3), attempt("01_a", 1, "2026-02-03T00:00:00+00:00"), attempt("99_gone", 4)]
    first, second = summarise(tried, ("01_a", "02_b"))
    assert (first.points, first.tries, first.last, first.share) == (3, 2, "2026-02-03", 0.75)
    assert (second.tries, second.share, second.words) == (0, 0.0, "not tried yet")


def test_each_notebook_has_a_line_with_its_complete_exercises() -> None:
    shown = Progress(summarise([attempt("01_a", 4), attempt("01_b", 3)], ("01_a", "01_b", "02_c")))
    assert list(shown.notebooks) == ["01", "02"]
    for form in (str(shown), shown._repr_html_()):
        assert "01 · 1 of 2 with all visible points" in form
        assert "02 · 0 of 1 with all visible points" in form


def test_progress_says_the_same_in_text_and_in_html() -> None:
    shown = Progress(summarise([attempt("01_a", 3)], ("01_a", "02_b")))
    for form in (str(shown), shown._repr_html_()):
        assert "01_a" in form
        assert "3 / 4 after 1 try" in form
        assert "not tried yet" in form


def test_only_notebooks_with_a_try_are_open() -> None:
    page = Progress(summarise([attempt("01_a", 3)], ("01_a", "02_b", "03_c"), {"03_c": 1}))._repr_html_()
    assert [part.startswith(" open") for part in page.split("<details")[1:]] == [True, False, True]
