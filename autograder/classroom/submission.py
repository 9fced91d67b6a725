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

from autograder.classroom.status import REFUSED, CommandError
from autograder.exercises.answer_cells import answers_in, settled

MAX_NOTEBOOK_BYTES = 64 << 20
MAX_ENTRIES = 3_000_000
MAX_CELLS = 2_000
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


def has_too_many_entries(content: bytes) -> bool:
    """Return whether parsing `content` would create millions of objects, each up to thirty times its text's size."""
    if len(content) <= MAX_ENTRIES:
        return False
    found = len(content) - len(content.translate(None, b"[{,"))  # one pass; three calls of `count` need three
    if found <= MAX_ENTRIES or not json.detect_encoding(content).startswith("utf-8"):
        return found > MAX_ENTRIES
    outside_texts = (token for token in _TOKENS.finditer(content) if token[0] in (b"[", b"{", b","))
    return next(itertools.islice(outside_texts, MAX_ENTRIES, None), None) is not None
