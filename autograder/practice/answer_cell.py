"""Compare the text that `check` grades with the session's later inputs and with the saved notebook.

IPython keeps the text of every input, also of one with a syntax error, and Jupyter tells a kernel the path of its
notebook. So `check` notices an answer cell that was edited after its last complete run.
"""

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from autograder.exercises.answer_cells import answers_in, grade_id, settled, source
from autograder.exercises.cell_text import as_ipython_reads
from autograder.host.grading import stubs_in

MAX_NOTEBOOK_BYTES = 64 * 2**20
_ran_at: dict[int, float] = {}  # the time of each input's end, by its number, since the first `check`


class Shell(Protocol):
    """What is used of IPython's shell; its history holds the text of each input, by its number."""

    history_manager: Any
    events: Any


def current_shell() -> Shell | None:
    """Return IPython's shell, or None outside of it."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def as_typed(source: str, shell: Shell | None) -> str:
    """Return the text of the input that IPython ran as `source`, as the grader reads it; `source` for other text."""
    for typed, ran in reversed(list(zip(*_history(shell), strict=False))):
        if _plain(ran) == _plain(source):
            return as_ipython_reads(typed)
    return source


def last_definition(name: str, shell: Shell | None) -> str:
    """Return the last input that defines `name`, as it was typed; empty if there is none."""
    return next((text for text in reversed(_history(shell)[0]) if _defines(text, name)), "")


def _history(shell: Shell | None) -> tuple[list[str], list[str]]:
    """Return the text of every input of the session, by its number, as typed and as IPython ran it."""
    if shell is None:
        return [], []
    kept = shell.history_manager
    return list(map(str, kept.input_hist_raw)), list(map(str, kept.input_hist_parsed))


def watch(shell: Shell | None) -> None:
    """Record from now on when each input ends, so that a later save of the notebook can be recognised."""
    if shell is not None and _remember_time not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _remember_time)


def _remember_time(result: Any) -> None:
    number = getattr(result, "execution_count", None)
    if isinstance(number, int):
        _ran_at[number] = time.time()


def text_that_counts(exercise_id: str, entry_point: str, text: str, shell: Shell | None) -> tuple[str, list[str]]:
    """Return the text that the grade takes if `text` is checked, and a sentence for each sign that it is another one.

    Where the notebook was saved after the run, its cells are read by the grader's own rules. So a copy of the stub, or
    a cell that was split, is checked as it will be graded.
    """
    inputs = [as_ipython_reads(typed) for typed in _history(shell)[0]]
    numbers = [number for number, typed in enumerate(inputs) if _plain(typed) == _plain(text)]
    if not numbers:  # defined in a file
        return text, []
    ran = f"Checked: the answer that ran as [{numbers[-1]}]."
    later = [number for number in range(numbers[-1] + 1, len(inputs)) if _defines(inputs[number], entry_point)]
    if later:
        failed = f"Input [{later[-1]}] defines {entry_point} too and did not run to its end"
        return text, [f"{ran} {failed}: correct it, run it, and check again."]
    saved, ran_at = _saved(exercise_id, shell), _ran_at.get(numbers[-1])
    if saved is None or (ran_at is not None and saved.at <= ran_at):
        return text, []
    if saved.doubts:
        return text, [f"{doubt} Keep one of them, in the cell of {exercise_id}." for doubt in saved.doubts]
    if _plain(saved.graded) == _plain(text):
        return text, saved.notes
    if _plain(text) in saved.parts or (_plain(text) in saved.own and stubs_in(text).leave_unanswered(entry_point)):
        return saved.graded, saved.notes
    if _plain(text) in saved.others:
        return text, [
            f"{ran} The grade takes another cell, that of {exercise_id}: copy the answer there.",
            *saved.notes,
        ]
    return text, [
        f"{ran} The saved notebook holds another text in this cell: if you edited the cell, run it and check again; "
        "else save the notebook."
    ]


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _defines(text: str, name: str) -> bool:
    """Tell whether a line of `text` defines `name`; the text may hold a syntax error, so it is not parsed."""
    return (
        re.search(rf"^(async +)?(def|class) +{re.escape(name)}\b|^{re.escape(name)} *=", text, re.MULTILINE) is not None
    )


@dataclass(frozen=True)
class _Saved:
    """What the saved notebook says of one exercise, by the rules of the grader."""

    at: float  # time of the save
    graded: str
    parts: set[str]  # of the graded text
    own: set[str]  # texts of the cells whose metadata names the exercise
    others: set[str]
    notes: list[str]
    doubts: list[str]


def _saved(exercise_id: str, shell: Shell | None) -> _Saved | None:
    """Return what the saved notebook says; None if the file is not there, or has no cell of the exercise.

    Jupyter names the notebook's file in the environment, VS Code in a variable of the session.
    """
    path = Path(os.environ.get("JPY_SESSION_NAME") or getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__", ""))
    try:
        status = path.stat()
        if path.suffix != ".ipynb" or status.st_size > MAX_NOTEBOOK_BYTES:
            return None
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found = settled(cells, exercise_id)
        answers, joined = answers_in({"cells": found.cells})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if exercise_id not in answers:
        return None
    texts = [_plain(as_ipython_reads(source(cell))) for cell in cells if isinstance(cell, dict)]

    def mine(of: list[Any]) -> set[str]:
        ids = [grade_id(cell) for cell in of if isinstance(cell, dict)]
        return {text for text, name in zip(texts, ids, strict=True) if name == exercise_id}

    own, parts = mine(cells), mine(found.cells)
    about = [note for note in (*found.notes, *joined) if re.search(rf"\b{exercise_id}\b", note)]
    doubts = [doubt for doubt in found.doubts if re.search(rf"\b{exercise_id}\b", doubt)]
    return _Saved(status.st_mtime, answers[exercise_id], parts, own, set(texts) - parts, about, doubts)
