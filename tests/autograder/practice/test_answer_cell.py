"""`check` says so when the text that it grades is not what stands in the answer's cell."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.practice import answer_cell
from autograder.practice.answer_cell import text_that_counts

NAME = "ask_doctor"
FIRST = "def ask_doctor(names):\n    return {}"
BROKEN = "def ask_doctor(names):\n    return {"
RAISES = "1 / 0\nasync def ask_doctor(names): pass"
ASSIGNED = "ask_doctor = undefined"


def noted(*inputs: str, source: str = FIRST) -> list[str]:
    history = SimpleNamespace(input_hist_raw=["", *inputs], input_hist_parsed=["", *inputs])
    text, notes = text_that_counts("00_doctor", NAME, source, SimpleNamespace(history_manager=history))
    assert text == source
    return notes


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Save a notebook with this text in the answer's cell, at a time in seconds."""
    path = tmp_path / "00_start_here.ipynb"

    def save(text: str, at: float = 1000.0) -> Path:
        cell = {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "00_doctor"}}, "source": [text]}
        path.write_text(json.dumps({"cells": [{"metadata": {}, "source": ""}, cell]}))
        os.utime(path, (at, at))
        monkeypatch.setenv("JPY_SESSION_NAME", str(path))
        return path

    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(answer_cell, "_ran_at", {})
    return save


@pytest.mark.parametrize("later", [BROKEN, RAISES, ASSIGNED])
def test_a_later_input_that_defines_the_answer_and_failed_is_named(saved, later: str) -> None:
    (note,) = noted("x = 1", FIRST, later, "check(...)")
    assert note.startswith("Checked: the answer that ran as [2]. Input [3] defines ask_doctor too and did not run")


@pytest.mark.parametrize(
    "later", ["ask_doctor(['torch'])", "ask_doctors = 1", "def other(): ask_doctor", "x.ask_doctor = 1"]
)
def test_a_later_input_that_only_uses_the_answer_is_no_sign(saved, later: str) -> None:
    assert noted(FIRST, later) == []


def test_an_answer_that_ran_again_is_the_newest(saved) -> None:
    assert noted(FIRST, BROKEN, FIRST + "  \n") == []


def test_a_text_from_elsewhere_is_no_sign(saved) -> None:
    assert noted("import mine", BROKEN) == []
    assert text_that_counts("00_doctor", NAME, FIRST, None) == (FIRST, [])


def test_a_saved_text_that_did_not_run_is_noticed(saved) -> None:
    saved(BROKEN)
    (note,) = noted(FIRST)
    assert "[1]. The saved notebook holds another text in this cell" in note
    saved(FIRST + "\n\n")
    assert noted(FIRST) == []


def test_an_answer_in_another_cell_than_the_graded_one_is_noticed(saved) -> None:
    path = saved("def ask_doctor(names):\n    return names")
    notebook = json.loads(path.read_text())
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": FIRST})
    path.write_text(json.dumps(notebook))
    first, second = noted(FIRST)
    assert first.endswith("The grade takes another cell, that of 00_doctor: copy the answer there.")
    assert second == "Another cell also defines ask_doctor; the answer's cell of 00_doctor counts."


def test_vs_code_names_the_notebook_in_the_session(saved, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(BROKEN)
    monkeypatch.delenv("JPY_SESSION_NAME")
    history = SimpleNamespace(input_hist_raw=["", FIRST], input_hist_parsed=["", FIRST])
    for names, count in (({}, 0), ({"__vsc_ipynb_file__": str(path)}, 1)):
        shell = SimpleNamespace(history_manager=history, user_ns=names)
        assert len(text_that_counts("00_doctor", NAME, FIRST, shell)[1]) == count


def test_a_save_before_the_run_is_no_sign(saved, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(BROKEN, at=1000.0)
    monkeypatch.setattr(answer_cell.time, "time", lambda: 1000.5)
    answer_cell._remember_time(SimpleNamespace(execution_count=1))
    answer_cell._remember_time(SimpleNamespace(execution_count=None))
    assert noted(FIRST) == []
    saved(BROKEN, at=1001.0)
    assert len(noted(FIRST)) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", '{"cells": 3}', '{"cells": [{"metadata": 3}]}', "[" * 100_000, '{"cells": [1]}']
)
def test_an_unreadable_notebook_is_no_sign(saved, text: str) -> None:
    saved("").write_text(text)
    assert noted(FIRST) == []


SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for text in {inputs!r}:
    shell.run_cell(text, store_history=True)
print("|".join(shell.user_ns["score"].warnings))
print("def" in str(shell.user_ns["score"]), "Input [4]" in shell.user_ns["score"]._repr_html_())
print(sorted(answer_cell._ran_at))
"""


def test_ipython_keeps_an_input_with_a_syntax_error(tmp_path: Path) -> None:
    stub = "def ask_doctor(names):\n    raise NotImplementedError"
    check = 'score = check("00_doctor", ask_doctor)'
    inputs = ["from autograder.practice import check", stub, check, BROKEN, check]
    code = "from autograder.practice import answer_cell\n" + SESSION.format(inputs=inputs)
    environment = os.environ | {"IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert "[2]. Input [4] defines ask_doctor too" in run.stdout, run.stderr
    assert "True True\n[3, 4, 5]" in run.stdout
