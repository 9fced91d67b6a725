"""The table of right answers beside a busy one, and the exit status that says whether they lost points."""

import sys
from types import SimpleNamespace

import pytest

from benchmarks import busy_neighbours


@pytest.mark.parametrize(("points", "status"), [(6.0, 0), (4.5, 1)])
def test_a_right_answer_that_loses_points_beside_the_busy_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], points: float, status: int
) -> None:
    sandbox = SimpleNamespace(level=1, notes=("a note",))
    results = iter([SimpleNamespace(points=6.0, max_points=6.0), SimpleNamespace(points=points, max_points=6.0)])
    hogs: list[str] = []
    monkeypatch.setattr(busy_neighbours, "open_sandbox", lambda: sandbox)
    monkeypatch.setattr(busy_neighbours, "graded", lambda exercise, opened: (next(results), 1.0))
    monkeypatch.setattr(busy_neighbours, "grade_exercise", lambda exercise, answers, **_: hogs.extend(answers.values()))
    monkeypatch.setattr(busy_neighbours.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(sys, "argv", ["busy_neighbours", "--quick"])
    assert busy_neighbours.main() == status
    assert f"{points:g} / 6" in capsys.readouterr().out
    (hog,) = hogs
    compile(hog, "hog", "exec")
