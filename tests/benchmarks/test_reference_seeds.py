"""The reference of each exercise is graded with many seeds, and a lost check is named with its seed."""

import sys
from dataclasses import replace

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
