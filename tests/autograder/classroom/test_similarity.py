"""Copies with other names and another layout are found; independent answers and the usual one are not."""

import ast
import re
import time
from pathlib import Path

import pytest

from autograder.classroom import similarity
from autograder.classroom.hand_in import HandedIn
from autograder.classroom.report import class_pages, summarise, this_environment
from autograder.classroom.report.alike import AlikePair
from autograder.classroom.similarity import alike_pairs
from autograder.exercises.registry import hidden_part
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord

SECOND = """
def read_table(rows):
    # a way of its own
    wanted = {}
    for row in rows:
        name, kind, target, inputs = row
        if kind == "output":
            wanted["output"] = inputs
        elif target not in wanted:
            wanted[target] = len(inputs) + 1
        else:
            wanted[target] += 2 * len(inputs)
    longest = max(wanted, key=lambda one: wanted[one])
    parts = [str(wanted[name]) for name in sorted(wanted) if name.startswith("call")]
    while parts and parts[0] != longest:
        parts = parts[1:]
        if len(parts) > 7:
            parts.reverse()
    return {"longest": longest, "parts": parts, "count": len(rows) - len(parts)}


def also(values):
    total, seen = 0, set()
    for value in values:
        if value in seen or value < 3:
            continue
        seen.add(value)
        total += value * value - 1
    pairs = [(a, b) for a in seen for b in seen if a < b and (a + b) % 5 == 0]
    return total, sorted(pairs), {a: b for a, b in pairs}
"""
EXERCISE = "04_read_a_graph"


def renamed(text: str) -> str:
    """Return the answer with other names, another layout and comments."""
    tree = ast.parse(text)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in node.args}
    shown = ast.unparse(tree)
    for name in own:
        shown = re.sub(rf"\b{name}\b(?!\")", f"{name}_of_mine", shown)
    return shown.replace("\n", "  # mine\n")


def pairs_of(*answers: tuple[str, str], status: ExerciseStatus = ExerciseStatus.GRADED) -> tuple[AlikePair, ...]:
    name = "04_fx_capture"
    hand_ins = [HandedIn(name, student, Path("x"), "0", {EXERCISE: text}) for student, text in answers]
    records = [
        SubmissionRecord(name, student, "0", SandboxRecord(1), (ExerciseRecord(EXERCISE, "value", 0, 6, status),))
        for student, _ in answers
    ]
    return alike_pairs(hand_ins, records)


def test_a_renamed_copy_is_found_and_shown_with_both_texts() -> None:
    other = renamed(SECOND)
    assert "wanted_of_mine" in other
    (pair,) = pairs_of(("ada", SECOND), ("ben", other), ("cy", "def read_table(rows):\n    return 1\n"))
    assert pair.students == ("ada", "ben")
    assert pair.answers[0].share > 0.95

    summary = summarise([], alike=[pair])
    pages = class_pages(summary, title="t", environment=this_environment())
    assert "wanted_of_mine" in pages["similar.html"]
    assert [entry.student for entry in summary.attention] == ["ada and ben"]
    assert "costs no points" in summary.attention[0].sentence


def test_a_copy_with_a_changed_line_is_found() -> None:
    changed = SECOND.replace("len(parts) > 7", "len(parts) >= 9")
    assert len(pairs_of(("ada", SECOND), ("ben", changed))) == 1


def test_independent_answers_are_not_listed() -> None:
    other = """
def read_table(rows):
    found = []
    names = [row[0] for row in rows]
    for position, row in enumerate(rows):
        readers = sum(names[position] in other[3] for other in rows)
        try:
            first = next(i for i, other in enumerate(rows) if other[2] == row[2])
        except StopIteration:
            first = -1
        found.append((readers, first, str(row[1]).upper()))
    if not found:
        raise ValueError("no rows")
    found.sort(reverse=True)
    text = ", ".join(f"{kind}: {readers}" for readers, first, kind in found if first >= 0)
    with_one = [one for one in found if one[0] == 1] or found[:1]
    return {"text": text, "most": found[0], "one": with_one[-1][2], "rows": tuple(names)}
"""
    assert pairs_of(("ada", SECOND), ("ben", other)) == ()


def test_answers_near_a_known_right_one_are_not_listed() -> None:
    part = hidden_part(EXERCISE)
    assert part is not None
    (reference,) = [control.answer for control in part.controls if control.name == "reference"]
    assert pairs_of(("ada", reference), ("ben", renamed(reference))) == ()


@pytest.mark.parametrize("text", ["def f(:", "x = " + "(" * 500, "\0", "def f():\n" + "    x = 1\n" * 9])
def test_what_cannot_be_compared_is_left_out(text: str) -> None:
    assert pairs_of(("ada", text), ("ben", text)) == ()


def test_an_exercise_that_was_not_answered_is_not_compared() -> None:
    assert pairs_of(("ada", SECOND), ("ben", SECOND), status=ExerciseStatus.NOT_FOUND) == ()


def test_300_answers_are_compared_within_seconds_of_processor_time() -> None:
    texts = [
        SECOND.replace("> 7", f"> {i}").replace("% 5", f"% {i + 2}") + f"\n\nextra_{i} = {i}\n" for i in range(300)
    ]
    start = time.process_time()
    found = pairs_of(*((f"s{i:03}", text) for i, text in enumerate(texts)))
    assert found
    assert time.process_time() - start < 20  # of one exercise; two minutes are allowed for a notebook


def test_more_tokens_than_there_are_characters_end_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_LETTERS", 16)
    assert [pair.students for pair in pairs_of(("ada", SECOND), ("ben", renamed(SECOND)))] == [("ada", "ben")]


def test_of_a_long_answer_only_the_beginning_is_compared() -> None:
    def long(student: str) -> str:
        return "def f():\n" + "".join(f"    a{i}.b{i}\n" for i in range(700)) + f"    {student} * 2 - {student}\n"

    (pair,) = pairs_of(("ada", long("x")), ("ben", long("y")))
    assert pair.answers[0].share == 1.0
