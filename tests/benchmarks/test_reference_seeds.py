"""The reference of each exercise is graded with many seeds, and a lost check is named with its seed."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.exercises import find
from autograder.host.compute_lock import compute_lock
from autograder.host.exercise import CheckFailedError
from autograder.host.sandbox import open_sandbox
from benchmarks.grading import reference_seeds
from tests.autograder.exercises.judged import known_answer, reference

EXERCISE = "04_read_a_graph"


def graded(text: str, seeds: range) -> list[list[str]]:
    grading = reference_seeds.ReferenceGrading(find(EXERCISE, hidden=True), text, open_sandbox())
    with compute_lock.held():
        return [failed for _, failed, _ in grading.lost(seeds)]


def test_each_seed_runs_every_check_in_the_same_worker() -> None:
    assert graded(reference(EXERCISE), range(3)) == [[], [], []]


def test_a_wrong_answer_loses_a_check_with_each_seed() -> None:
    wrong = known_answer(EXERCISE, "the longest chain to anywhere")

    for failed in graded(wrong, range(2)):
        assert any(told.startswith("longest_path of ") for told in failed)


def test_each_seed_loads_the_answer_anew() -> None:
    counting = "\n_calls = []\n_right = read_graph\n\ndef read_graph(rows):\n    _calls.append(1)\n    "
    once = counting + "return _right(rows) if len(_calls) < 40 else {}\n"

    assert graded(reference(EXERCISE) + once, range(2))[1] == graded(reference(EXERCISE) + once, range(1, 2))[0]


def test_what_fails_is_named_and_what_takes_long_gets_fewer_seeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exercise = find(EXERCISE, hidden=True)

    def failing(answer: object, draw: object) -> None:
        raise CheckFailedError("The third is never right.")

    third = replace(exercise.checks[2], run=failing)
    few = replace(exercise, checks=(*exercise.checks[:1], third))
    monkeypatch.setattr(reference_seeds, "find", lambda exercise_id, hidden: few)
    monkeypatch.setattr(reference_seeds, "MEASURED", 2)
    arguments = ["--exercises", EXERCISE, "--seeds", "1000", "--first", "7", "--most-s", "0.001", "--part-s", "0.001"]
    monkeypatch.setattr(sys, "argv", ["reference_seeds", *arguments])

    assert reference_seeds.main() == 1
    printed = capsys.readouterr().out
    assert f"  seed 7: {third.name}: The third is never right." in printed
    assert "1 references, 0 of them with all 1000 seeds" in printed


def test_a_check_that_draws_nothing_is_not_repeated() -> None:
    asked: list[str] = []
    exercise = find(EXERCISE, hidden=True)
    fixed = replace(exercise.checks[0], name="fixed", run=lambda answer, draw: asked.append("fixed"))
    drawn = replace(fixed, name="drawn", run=lambda answer, draw: asked.append(f"drawn {draw.integer(1, 1)}"))
    lost = replace(fixed, name="lost", run=lambda answer, draw: _lose(asked))
    grading = reference_seeds.ReferenceGrading(
        replace(exercise, checks=(fixed, drawn, lost)), reference(EXERCISE), open_sandbox()
    )
    with compute_lock.held():
        found = [failed for _, failed, _ in grading.lost(range(2))]
    assert asked == ["fixed", "drawn 1", "lost", "drawn 1", "lost"]
    assert found == [["lost: It is wrong."]] * 2


def _lose(asked: list[str]) -> None:
    asked.append("lost")
    raise CheckFailedError("It is wrong.")


def test_a_run_continues_where_the_file_ends_and_grades_again_what_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graded_seeds: list[int] = []
    failing = {4}

    def lost(self: object, seeds: Sequence[int]) -> Iterator[tuple[int, list[str], float]]:
        for seed in seeds:
            graded_seeds.append(seed)
            yield seed, ["a check: It is wrong."] * (seed in failing), 0.01

    monkeypatch.setattr(reference_seeds.ReferenceGrading, "lost", lost)
    kept = ["--exercises", EXERCISE, "--first", "3", "--kept", str(tmp_path / "kept.json")]

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["reference_seeds", *kept, *arguments])
        graded_seeds.clear()
        return reference_seeds.main()

    assert (run("--seeds", "2"), graded_seeds) == (1, [3, 4])
    failing.clear()
    assert (run("--seeds", "4"), graded_seeds) == (0, [4, 5, 6])
    capsys.readouterr()
    assert (run("--seeds", "4", "--only-print"), graded_seeds) == (0, [])
    printed = capsys.readouterr().out
    assert "1 references, 1 of them with all 4 seeds; 0 gradings lost a check" in printed
    assert "failed once, and were graded again: 4" in printed
