"""Compare the text that `check` grades with the session's later inputs and with the saved notebook.

IPython keeps the text of every input, also of one with a syntax error, and Jupyter tells a kernel the path of its
notebook. So `check` notices an answer cell that was edited after its last complete run.
"""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

MAX_NOTEBOOK_BYTES = 64 * 2**20
_ran_at: dict[int, float] = {}  # the time of each input's end, by its number, since the first `check`


class Shell(Protocol):
    """What is used of IPython's shell; `input_hist_raw` holds the text of each input, by its number."""

    history_manager: Any
    events: Any


def current_shell() -> Shell | None:
    """Return IPython's shell, or None outside of it."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def inputs_of(shell: Shell | None) -> list[str]:
    """Return the text of every input of the session, by its number; empty outside IPython."""
    return [str(text) for text in shell.history_manager.input_hist_raw] if shell else []


def watch(shell: Shell | None) -> None:
    """Record from now on when each input ends, so that a later save of the notebook can be recognised."""
    if shell is not None and _remember_time not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _remember_time)


def _remember_time(result: Any) -> None:
    number = getattr(result, "execution_count", None)
    if isinstance(number, int):
        _ran_at[number] = time.time()


def stale_notes(exercise_id: str, entry_point: str, source: str, inputs: Sequence[str]) -> list[str]:
    """Return a sentence for each sign that `source` is not what stands in the answer's cell; empty if there is none."""
    numbers = [number for number, text in enumerate(inputs) if _plain(text) == _plain(source)]
    if not numbers:  # defined in a file, or by a cell with a command of the notebook, which IPython rewrites
        return []
    notes: list[str] = []
    later = [number for number in range(numbers[-1] + 1, len(inputs)) if _defines(inputs[number], entry_point)]
    if later:
        notes.append(
            f"Checked: the answer that ran as [{numbers[-1]}]. Input [{later[-1]}] defines {entry_point} too and did "
            "not run to its end: mend it, run it, and check again."
        )
    saved = _saved_cell(exercise_id)
    if saved is not None and _plain(saved[0]) != _plain(source) and not later:
        ran_at = _ran_at.get(numbers[-1])
        if ran_at is None or saved[1] > ran_at:
            notes.append(
                f"Checked: the answer that ran as [{numbers[-1]}]. The saved notebook holds another text in this cell: "
                "if you edited the cell, run it and check again; else save the notebook."
            )
    return notes


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _defines(text: str, name: str) -> bool:
    """Tell whether a line of `text` defines `name`; the text may hold a syntax error, so it is not parsed."""
    return (
        re.search(rf"^(async +)?(def|class) +{re.escape(name)}\b|^{re.escape(name)} *=", text, re.MULTILINE) is not None
    )


def _saved_cell(exercise_id: str) -> tuple[str, float] | None:
    """Return the saved text of the exercise's cell and the time of the save; None if there is no such file or cell."""
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    try:
        status = path.stat()
        if path.suffix != ".ipynb" or status.st_size > MAX_NOTEBOOK_BYTES:
            return None
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == exercise_id:
                return "".join(cell["source"]), status.st_mtime
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None
