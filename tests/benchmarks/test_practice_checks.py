"""The benchmark of waiting for `check`: it makes right checks of our own solutions, and says which are too slow."""

import sys
from pathlib import Path

import pytest

from benchmarks.grading import practice_checks


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["practice_checks", "--exercises", "04_read_a_graph"])


def test_a_solution_is_checked_several_times_and_gets_every_point() -> None:
    taken, right = practice_checks.times_of("04_read_a_graph")

    assert right
    assert len(taken) == 1 + practice_checks.REPEATS
    assert all(seconds > 0 for seconds in taken)


@pytest.mark.parametrize(
    ("later_s", "right", "status", "said"),
    [
        (0.4, True, 0, "after the first: none"),
        (2.5, True, 1, "after the first: 04_read_a_graph"),
        (0.4, False, 1, "without full points: 04_read_a_graph"),
    ],
)
def test_what_is_too_slow_or_wrong_is_named(
    later_s: float,
    right: bool,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(practice_checks, "times_of", lambda exercise: ([9.0, later_s, later_s, later_s], right))

    assert practice_checks.main() == status
    assert said in capsys.readouterr().out
