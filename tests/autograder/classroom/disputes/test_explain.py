"""`autograder explain` has the inputs of the first grading, and prints Python whatever was answered."""

import ast
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom import cli
from autograder.classroom.batch import Journal, LocalEngine, grade_class, secret_seed
from autograder.classroom.disputes.case_text import case_text
from autograder.classroom.disputes.heard_grading import disputed, grade_and_hear
from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.exercises import find
from autograder.exercises.quality.controls import controls
from autograder.host.exercise import REFERENCE
from autograder.host.sandbox import open_sandbox
from tests.autograder.wrong_answers import OF_KINDS
from tests.drawn import some

EXERCISE, NOTEBOOK = "04_read_a_graph", "04_fx_capture"
HOSTILE = """\
def read_graph(rows):
    text = "\\n\\nimport os  # \\x1b[31m \\u202e \\'\\'\\' \\"\\"\\" \\ud800"
    return {"inputs": [text], "leaf_modules": text, "two_users": [], "dead": [], "longest_path": 0, text: text}
"""
RAISES = """\
def read_graph(rows):
    raise ValueError("one\\nimport os\\r\\x0bimport sys\\u2028import json \\x1b[2J")
"""
OF_ALL_KINDS = {**OF_KINDS, "12_masked_blend": "one lane too many"}
CALLED = {"04_read_a_graph", "04_shape_propagation", "01_scaled_dot_product"}  # the case holds a call of the function


def answer(exercise: str, name: str) -> str:
    return next(control.answer for control in controls(exercise) if control.name == name)


def hand_in(course: Course, student: str, text: str) -> None:
    """Put a notebook with one answer where it is collected, and grade it as a batch does."""
    folder = course.submitted / student / NOTEBOOK
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NOTEBOOK}.ipynb"
    cell = {"id": EXERCISE, "cell_type": "code", "source": text, "metadata": {}, "outputs": []}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    read = read_hand_in(NOTEBOOK, student, path)
    with Journal(course.journal) as journal:
        seed = secret_seed(course.seed_file)
        run = grade_class([read], journal, engine=LocalEngine(open_sandbox(), 1), seed=seed)
    assert run.unfinished == ()


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    return open_course()


def explained(*arguments: str, status: int = 0, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["explain", *arguments]) == status, capsys.readouterr()
    return capsys.readouterr().out


def unshowable(text: str) -> set[str]:
    """Return the characters of a text that may drive a terminal or reorder lines."""
    return {c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}}


def test_the_inputs_are_those_of_the_first_grading_and_the_verdict_is_that_of_the_record(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "ada", answer(EXERCISE, "strings"))
    said = explained("ada", NOTEBOOK, EXERCISE, capsys=capsys)
    assert "verdict and record agree" in said
    assert "the reference solution passes this check on the same inputs" in said
    assert "REFERENCE" not in said

    course.seed_file.chmod(0o600)
    course.seed_file.write_text("1")  # a seed that is not the first grading's draws other graphs
    assert "VERDICT AND RECORD DIFFER" in explained("ada", NOTEBOOK, EXERCISE, status=1, capsys=capsys)


@pytest.mark.parametrize("text", [HOSTILE, RAISES], ids=["returned", "raised"])
def test_no_text_of_an_answer_becomes_code_or_reaches_the_terminal_as_control(
    text: str, course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "eve", text)
    said = explained("eve", NOTEBOOK, EXERCISE, capsys=capsys)
    assert "verdict and record agree" in said
    assert unshowable(said) == set()
    statements = ast.parse(said).body
    assert {type(each) for each in statements} <= {ast.Assign}  # no import of the answer's, and no call

    if text == HOSTILE:
        got = [ast.literal_eval(each.value) for each in statements if "got" in ast.unparse(each)[:5]]  # type: ignore[attr-defined]
        names: dict[str, Any] = {}
        exec(text, names)
        returned = names["read_graph"]([])
        assert {"inputs", "leaf_modules"} <= {key for each in got for key in each}
        assert all(returned[key] == value for each in got for key, value in each.items())


def test_a_student_gets_one_case_and_nothing_that_leads_to_another(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "bob", answer(EXERCISE, "strings"))
    checks = find(EXERCISE, hidden=True).checks
    file = tmp_path / "bob.py"
    assert cli.main(["explain", "bob", NOTEBOOK, EXERCISE, "--for-student", str(file)]) == 2
    assert "name one of" in capsys.readouterr().err
    assert not file.exists()

    chosen = next(check for check in checks if check.hidden)
    explained("bob", NOTEBOOK, EXERCISE, chosen.name, "--for-student", str(file), capsys=capsys)
    written = file.read_text()
    names: dict[str, Any] = {}
    exec(compile(written, "bob.py", "exec"), names)
    right: dict[str, Any] = {}
    exec(answer(EXERCISE, REFERENCE), right)
    returned = right["read_graph"](names["question"])
    assert names["expected"] == {key: returned[key] for key in names["expected"]}
    assert set(names["got"].values()) == {"x"}
    assert names["got"].keys() == names["expected"].keys()
    assert [check.name for check in checks if repr(check.name) in written] == [chosen.name]
    read = read_hand_in(NOTEBOOK, "bob", course.submitted / "bob" / NOTEBOOK / f"{NOTEBOOK}.ipynb")
    for seed in (secret_seed(course.seed_file), read.own_seed(secret_seed(course.seed_file))):
        assert str(seed) not in written


def test_what_is_not_there_is_one_sentence(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(course, "ada", answer(EXERCISE, "strings"))
    (course.submitted / "ada" / NOTEBOOK / f"{NOTEBOOK}.ipynb").write_text('{"cells": []}')
    for arguments, words in [
        (("bob", NOTEBOOK), "bob has handed in no 04_fx_capture"),
        (("../ada", NOTEBOOK), "has handed in no"),
        (("ada", "04_fx"), "no assignment is called '04_fx'"),
        (("ada", NOTEBOOK), "is not graded yet"),
    ]:
        assert cli.main(["explain", *arguments]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("exercise", some(list(OF_ALL_KINDS), 4, name="disputed kinds"))
def test_the_case_of_every_kind_is_python_that_gives_what_the_answer_gave(exercise: str) -> None:
    found, text = find(exercise, hidden=True), answer(exercise, OF_ALL_KINDS[exercise])
    sandbox = open_sandbox()
    again = grade_and_hear(found, {exercise: text}, sandbox=sandbox, seed=5)
    right = grade_and_hear(found, {exercise: answer(exercise, REFERENCE)}, sandbox=sandbox, seed=5)
    assert again.record is not None
    lost = [check for check in again.record.checks if check.points < check.max_points]
    assert lost
    for check in lost:
        pairs = disputed(again.heard.get(check.name, []), right.heard.get(check.name, []))
        written = [case_text(mine, reference, found.entry_point) for mine, reference in pairs]
        for each in written:
            ast.parse(each)
        if exercise in CALLED:
            assert_gives_what_was_got(written[0], found.setup, text, found.entry_point)
    heard = [each for some_heard in again.heard.values() for each in some_heard]
    assert heard, "no request of this kind was heard"


def assert_gives_what_was_got(written: str, setup: str, text: str, entry_point: str) -> None:
    """Paste a case below the answer, make the call that its comment shows, and compare."""
    names: dict[str, Any] = {}
    exec(f"{setup}\n{text}\n{written}", names)
    call = next(line for line in written.splitlines() if line.startswith(f"# {entry_point}("))
    result = eval(call.removeprefix("# "), names)
    if "got_tensors" not in names:
        read = {key: result[key] for key in names["got"]} if isinstance(names["got"], dict) else result
        assert read == names["got"]
        return
    for mine, got in zip(result, names["got_tensors"], strict=False):
        assert mine.shape == got.shape
        assert bool((mine == got).all() | ((mine - got).abs().max() < 1e-4))
