"""Read a submitted notebook as data: which cell answers which exercise.

The file is opened once, as a regular file of bounded size, and parsed as JSON. Only the text of its answer cells is
used.
"""

import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.classroom.answer_cells import grade_id as id_of
from autograder.classroom.answer_cells import settled, source
from autograder.classroom.status import REFUSED, CommandError
from autograder.exercises import all_exercises
from autograder.host.cell_text import as_ipython_reads

MAX_NOTEBOOK_BYTES = 64 << 20
MAX_ENTRIES = 3_000_000
MAX_CELLS = 2_000
OTHER_TYPES = ("markdown", "raw")
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)


class SubmissionError(CommandError):
    """A submission cannot be graded; the message says why and what to do."""

    exit_code = REFUSED


@dataclass(frozen=True)
class Submission:
    """A submitted notebook: its answers by exercise id, and notes on repairs that were needed to find them."""

    answers: Mapping[str, str]
    notes: tuple[str, ...]
    sha256: str
    notebook: Mapping[str, Any] = field(repr=False)  # with the ids that its cells should have
    undecided: str = ""  # why a person must say which cells are meant; empty as a rule


def read_submission(path: Path) -> Submission:
    """Read the notebook at `path`; raises `SubmissionError`."""
    return parse_submission(read_bytes(path), path.name)


def parse_submission(content: bytes, name: str) -> Submission:
    """Parse the bytes of the notebook called `name`; raises `SubmissionError`."""
    if has_too_many_entries(content):
        raise SubmissionError(
            f"{name} holds more than {MAX_ENTRIES:,} lists, objects and values; clear its outputs and save it."
        )
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        raise SubmissionError(
            f"{name} is not a notebook: it is not JSON. Hand in the .ipynb file that JupyterLab saved."
        ) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise SubmissionError(
            f"{name} is not a notebook: it has no list of cells. Hand in the .ipynb file that JupyterLab saved."
        )
    if len(notebook["cells"]) > MAX_CELLS:
        raise SubmissionError(f"{name} has {len(notebook['cells']):,} cells; at most {MAX_CELLS:,} are read.")
    found = settled(notebook["cells"], name.removesuffix(".ipynb"))
    notebook = {**notebook, "cells": found.cells}
    answers, notes = answers_in(notebook)
    sha256 = hashlib.sha256(content).hexdigest()
    return Submission(answers, (*found.notes, *notes), sha256, notebook, found.undecided)


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file of bounded size that is not a link; raises `SubmissionError`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SubmissionError(f"{path.name} cannot be read: {error.strerror}.") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise SubmissionError(f"{path.name} is not a regular file.")
    with os.fdopen(fd, "rb") as file:
        if found.st_size > MAX_NOTEBOOK_BYTES:
            raise SubmissionError(
                f"{path.name} has {found.st_size:,} bytes; clear its outputs: at most {MAX_NOTEBOOK_BYTES:,} are read."
            )
        return file.read(MAX_NOTEBOOK_BYTES + 1)


def answers_in(notebook: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the text of each answer cell by exercise id, and notes on repairs.

    JupyterLab copies a cell's metadata when the cell is split or copied, so cells with the same id are joined in order.
    """
    parts: dict[str, list[str]] = {}
    notes: list[str] = []
    for cell in notebook["cells"]:
        grade_id = id_of(cell)
        if grade_id not in all_exercises():
            continue
        kind = cell.get("cell_type")
        if kind != "code":
            shown = f"a {kind} cell" if kind in OTHER_TYPES else "a cell of no known type"  # the type may be any text
            notes.append(f"The answer cell of {grade_id} had become {shown}; its text was graded as code.")
        if grade_id in parts:
            notes.append(f"The answer cell of {grade_id} was split or copied; its parts were joined in order.")
        parts.setdefault(grade_id, []).append(as_ipython_reads(source(cell)))
    return {grade_id: "\n".join(texts) for grade_id, texts in parts.items()}, tuple(dict.fromkeys(notes))


def has_too_many_entries(content: bytes) -> bool:
    """Return whether parsing `content` would create millions of objects, each up to thirty times its text's size."""
    if len(content) <= MAX_ENTRIES:
        return False
    found = len(content) - len(content.translate(None, b"[{,"))  # one pass; three calls of `count` need three
    if found <= MAX_ENTRIES or not json.detect_encoding(content).startswith("utf-8"):
        return found > MAX_ENTRIES
    outside_texts = (token for token in _TOKENS.finditer(content) if token[0] in (b"[", b"{", b","))
    return next(itertools.islice(outside_texts, MAX_ENTRIES, None), None) is not None
