"""Hints come one step a call, are stored, and hold neither an answer nor a part of a hidden case."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.registry import hidden_part
from autograder.host.records import ExerciseRecord, ExerciseStatus
from autograder.practice import hint, hints, progress, visible_checks
from autograder.practice.errors import UnknownExerciseError
from autograder.practice.history import attempts, history_path, remember

COURSE = Path(__file__).parents[3]
EXERCISE = "05_bias_silu_pass"
LONGEST_SHARED = 30  # characters of a solution's line, white space aside, that a hint may hold


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def solution_lines(exercise: str) -> Iterator[str]:
    """The lines of the solution in the source notebook, and of the reference among the controls."""
    for path in (COURSE / "notebooks").glob("*/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["id"] == exercise:
                yield from "".join(cell["source"]).split("### BEGIN SOLUTION")[-1].splitlines()
    part = hidden_part(exercise)
    for control in part.controls if part else ():
        if control.name == "reference":
            yield from control.answer.splitlines()


def test_each_call_shows_one_step_more_and_the_last_stays() -> None:
    shown = [hint(EXERCISE) for _ in range(4)]
    assert [len(h.steps) for h in shown] == [1, 2, 3, 3]
    assert [h.steps for h in shown] == [find(EXERCISE).hints[: len(h.steps)] for h in shown]
    assert "the last of three" in str(shown[1])
    assert "last step" in str(shown[2])


def test_each_exercise_counts_its_own_steps() -> None:
    hint(EXERCISE)
    assert len(hint("04_read_a_graph").steps) == 1
    assert len(hint(EXERCISE).steps) == 2


def test_text_and_html_say_the_same_and_code_is_code() -> None:
    hint(EXERCISE)
    both = hint(EXERCISE)
    assert "How to start: Four steps" in str(both)
    assert "<strong>How to start. </strong>Four steps" in both._repr_html_()
    assert "<code>replace_all_uses_with</code>" in both._repr_html_()


def test_a_hint_is_no_try_and_progress_shows_it() -> None:
    hint(EXERCISE)
    hint(EXERCISE)
    assert list(attempts()) == []
    assert "not tried yet, 2 hints" in str(progress())
    remember(ExerciseRecord(EXERCISE, "graph", 3, 7.2, ExerciseStatus.GRADED))
    assert "3 / 7.2 after 1 try, 2 hints" in str(progress())


@pytest.mark.parametrize("line", ["{", '{"time":"t","exercise":"05_bias_silu_pass","hint":true}', '{"hint":3}', "[3]"])
def test_a_broken_line_of_the_history_is_no_hint(line: str) -> None:
    hint(EXERCISE)
    with history_path().open("a") as file:
        file.write(line + "\n")
    assert len(hint(EXERCISE).steps) == 2


def test_a_step_that_does_not_exist_counts_as_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "hints_taken", lambda: {EXERCISE: 9})
    assert len(hint(EXERCISE).steps) == 3


def test_an_exercise_without_hints_says_so_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "find", lambda exercise_id: replace(find(exercise_id), hints=()))
    assert str(hint(EXERCISE)).startswith("This exercise has no hints")
    assert "<code>check</code>" in hint(EXERCISE)._repr_html_()
    assert not history_path().exists()


def test_an_unknown_exercise_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownExerciseError, match="did you mean 05_bias_silu_pass"):
        hint("05_bias_silu")


def test_a_report_mentions_hints_only_where_a_check_failed() -> None:
    exercise = find(EXERCISE)

    def note(points: float, status: ExerciseStatus) -> list[str]:
        return visible_checks._hint_note(exercise, ExerciseRecord(EXERCISE, "graph", points, 7, status))

    assert 'hint("05_bias_silu_pass")' in note(3, ExerciseStatus.GRADED)[0]
    assert 'hint("05_bias_silu_pass")' in note(0, ExerciseStatus.STUDENT_ERROR)[0]
    assert note(7, ExerciseStatus.GRADED) == note(0, ExerciseStatus.NOT_FOUND) == []


def test_hints_have_three_steps_or_none() -> None:
    with pytest.raises(ValueError, match="three steps"):
        replace(find(EXERCISE), hints=("only one",))  # type: ignore[arg-type]


@pytest.mark.parametrize("exercise_id", all_exercises())
def test_hints_are_three_different_texts_of_readable_length(exercise_id: str) -> None:
    hints = find(exercise_id).hints
    assert len(set(hints)) == 3
    assert all(8 <= len(step.split()) <= 70 for step in hints)
    assert all(step.count("`") % 2 == 0 for step in hints)


@pytest.mark.parametrize("exercise_id", all_exercises())
def test_hints_hold_no_line_of_the_answer_and_nothing_hidden(exercise_id: str) -> None:
    told = "".join(" ".join(find(exercise_id).hints).split())
    lines = ["".join(line.split()) for line in solution_lines(exercise_id)]
    assert [line for line in lines if len(line) > LONGEST_SHARED and line in told] == []
    part = hidden_part(exercise_id)
    names = ["".join(c.name.split()) for c in (part.checks if part else ()) if c.name.count(" ") > 1]
    assert [name for name in names if name in told] == []
