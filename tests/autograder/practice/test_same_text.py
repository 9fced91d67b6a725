"""Practice and the grade read the same text of an odd notebook, and say the same of it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.hand_in import HandedIn, grade_answers, read_hand_in
from autograder.host.sandbox import open_sandbox

NAME, EXERCISE = "00_start_here", "00_doctor"
SAVED_AT = 4e9  # after the runs
STUB = 'def ask_doctor(names):\n    """Answer."""\n    raise NotImplementedError("Write your answer here.")'
FIRST = "def ask_doctor(names):\n    return {'first': names}"
SECOND = "def ask_doctor(names):\n    return {'second': names}"
CHECK = 'check("00_doctor", ask_doctor)'
INDENTED = "\n" + "\n".join(f"    {line}" for line in FIRST.splitlines())
PROMPTS = ">>> " + FIRST.replace("\n", "\n... ")
UNTOUCHED = "The answer's cell of 00_doctor is untouched; another cell defines ask_doctor and counts."
NOT_CHECKED = (
    "The answer's cell of 00_doctor is not the one that was checked; another cell defines ask_doctor and counts."
)
ANOTHER = "Another cell also defines ask_doctor; the answer's cell of 00_doctor counts."
JOINED = "The answer cell of 00_doctor was split or copied; its parts were joined in order."
COPIED = "A copy of the stub of 00_doctor was left out."
LOST = "The cells of 00_doctor had lost their metadata; they were recognised by the checks."
UNCERTAIN = "Several cells answer 00_doctor, and it is not certain which one was checked."


@dataclass(frozen=True)
class Row:
    """A notebook: its cells in order, the cells in the order of the runs, and what both sides say of it."""

    cells: tuple[tuple[str, str], ...]  # what its metadata says, and the text
    text: str = FIRST  # that is graded
    said: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()  # by default from top to bottom
    undecided: str = ""


def answer(text: str) -> tuple[str, str]:
    return (EXERCISE, text)


def other(text: str) -> tuple[str, str]:
    return ("", text)


CHECKED = (f"{EXERCISE}_check", CHECK)
ROWS = {
    "as released": Row((answer(FIRST), CHECKED)),
    "an indented paste": Row((answer(INDENTED), CHECKED)),
    "a paste with prompts": Row((answer(PROMPTS), CHECKED)),
    "an await outside of a function": Row((answer(f"{FIRST}\nawait nothing()"), CHECKED), f"{FIRST}\nawait nothing()"),
    "an indented paste in another cell": Row((answer(STUB), other(INDENTED), CHECKED), said=(UNTOUCHED,)),
    "below the stub": Row((answer(STUB), other(FIRST), CHECKED), said=(UNTOUCHED,)),
    "above the stub, which runs later": Row((other(FIRST), answer(STUB), CHECKED), said=(UNTOUCHED,)),
    "at the end, checked there": Row((answer(STUB), CHECKED, other(FIRST)), said=(UNTOUCHED,), runs=(0, 2, 1)),
    "two below the stub": Row((answer(STUB), other(SECOND), other(FIRST), CHECKED), said=(UNTOUCHED,)),
    "a second answer above the check": Row((answer(SECOND), other(FIRST), CHECKED), said=(NOT_CHECKED,)),
    "an old try above the answer": Row((other(SECOND), answer(FIRST), CHECKED), said=(ANOTHER,)),
    "a later try that was never checked": Row((answer(FIRST), CHECKED, other(SECOND)), said=(ANOTHER,), runs=(0, 1)),
    "a later try that was checked": Row((answer(SECOND), CHECKED, other(FIRST)), runs=(0, 2, 1), undecided=UNCERTAIN),
    "an old try that was checked": Row((other(FIRST), answer(SECOND), CHECKED), runs=(1, 0, 2), undecided=UNCERTAIN),
    "a copied stub below": Row((answer(FIRST), answer(STUB), CHECKED), said=(COPIED,)),
    "a copied stub above": Row((answer(STUB), answer(FIRST), CHECKED), said=(COPIED,)),
    "a copied answer that was edited": Row((answer(SECOND), answer(FIRST), CHECKED), f"{SECOND}\n{FIRST}", (JOINED,)),
    "a copy, the first checked": Row((answer(FIRST), answer(SECOND), CHECKED), runs=(1, 0, 2), undecided=UNCERTAIN),
    "a split cell": Row((answer("import math"), answer(FIRST), CHECKED), f"import math\n{FIRST}", (JOINED,)),
    "a cell without metadata": Row((other(FIRST), CHECKED), said=(LOST,)),
}  # fmt: skip


def notebook(row: Row) -> dict[str, Any]:
    runs = {place: number for number, place in enumerate(row.runs or range(len(row.cells)), start=2)}
    return {
        "cells": [
            {
                "cell_type": "code",
                "metadata": {"nbgrader": {"grade_id": name}} if name else {},
                "source": text,
                "outputs": [],
                "execution_count": runs.get(place),
            }
            for place, (name, text) in enumerate(row.cells)
        ]
    }


# Runs each notebook in an IPython of its own, and says what `check` would grade, and what it says.
PRACTICE = """
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
from autograder.host.judge import not_found
from autograder.practice import answer_cell, visible_checks

checked = {}

def no_grading(exercise, answers):
    checked["text"] = answers[exercise.id]
    return not_found(exercise, "seen")

visible_checks.untouched = no_grading
shell, found = InteractiveShell.instance(), {}
for name, (path, inputs) in json.loads(sys.stdin.read()).items():
    os.environ["JPY_SESSION_NAME"] = path
    shell.reset(new_session=True)
    answer_cell._ran_at.clear()
    checked.clear()
    shell.run_cell("from autograder.practice import check", store_history=True)
    for text in inputs:
        done = shell.run_cell(text, store_history=True, silent=False)
    error = done.error_in_exec
    warnings = [] if done.result is None else list(done.result.warnings)
    found[name] = {**checked, "warnings": warnings, "error": f"{type(error).__name__}: {error}" if error else ""}
print("FOUND" + json.dumps(found))
"""


def practised(folder: Path, rows: dict[str, Row]) -> dict[str, dict[str, Any]]:
    given = {}
    for number, (name, row) in enumerate(rows.items()):
        path = folder / str(number) / f"{NAME}.ipynb"
        path.parent.mkdir()
        path.write_text(json.dumps(notebook(row)))
        os.utime(path, (SAVED_AT, SAVED_AT))
        inputs = [row.cells[place][1] for place in row.runs or range(len(row.cells))]
        given[name] = (str(path), inputs)
    environment = os.environ | {"IPYTHONDIR": str(folder), "HOME": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", PRACTICE],
        input=json.dumps(given),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "FOUND" in run.stdout, run.stdout + run.stderr
    found: dict[str, dict[str, Any]] = json.loads(run.stdout.rpartition("FOUND")[2])
    return found


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return practised(tmp_path_factory.mktemp("practice"), ROWS | COMMANDS)


def handed_in(row: Row, folder: Path) -> HandedIn:
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps(notebook(row)))
    return read_hand_in(NAME, "ada", path)


@pytest.mark.parametrize("name", ROWS)
def test_the_grade_reads_an_odd_notebook_as_stated(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    hand_in = handed_in(row, tmp_path)
    assert bool(row.undecided) == bool(hand_in.undecided)
    if row.undecided:
        assert row.undecided in hand_in.undecided
    else:
        assert (hand_in.answers[EXERCISE], hand_in.repairs) == (row.text, row.said)


@pytest.mark.parametrize("name", ROWS)
def test_check_grades_the_same_text_and_says_the_same(name: str, practice: dict[str, dict[str, Any]]) -> None:
    row, found = ROWS[name], practice[name]
    assert found["error"] == ""
    assert found["text"].rstrip() == row.text
    expected = [f"{row.undecided} Keep one of them, in the cell of {EXERCISE}."] if row.undecided else list(row.said)
    assert found["warnings"] == expected


COMMAND = "The answer's cell holds a command of the notebook (a line with %, ! or ?), which the grader does not know."
CALLED = "The answer's cell also calls check, which the grader does not know."
COMMANDS = {
    "%%time": Row((answer(f"%%time\n{FIRST}"), CHECKED), said=(COMMAND,)),
    "%timeit": Row((answer(f"{FIRST}\n%timeit -n1 -r1 1"), CHECKED), said=(COMMAND,)),
    "!ls": Row((answer(f"{FIRST}\nfiles = !ls"), CHECKED), said=(COMMAND,)),
    "?": Row((answer(f"{FIRST}\nask_doctor?"), CHECKED), said=(COMMAND,)),
    "a call of check": Row((answer(f"{FIRST}\n{CHECK}"), CHECKED), said=(CALLED,)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_check_names_what_only_a_notebook_runs(name: str, practice: dict[str, dict[str, Any]]) -> None:
    assert COMMANDS[name].said[0] in practice[name]["error"]


def test_the_grade_names_it_in_the_same_sentence(tmp_path: Path) -> None:
    sandbox = open_sandbox()
    for name, row in COMMANDS.items():
        hand_in = handed_in(row, tmp_path)
        record = grade_answers(NAME, "ada", hand_in.answers, submission_sha256="", sandbox=sandbox, seed=1)
        doctor = next(exercise for exercise in record.exercises if exercise.id == EXERCISE)
        assert doctor.points == 0
        assert doctor.message.startswith(row.said[0]), name
        assert doctor.checks[0].message == doctor.message
