"""Whatever is handed in, nbgrader reads a well-formed notebook, and a reason where nothing could be read."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.nbgrader.repair import CELL_CHARACTERS, readable_notebook

CELL = {"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
UNREADABLE = {
    "nothing": b"",
    "not JSON": b"{",
    "a merge conflict": b"<<<<<<< HEAD\n{}\n=======\n",
    "latin-1": '{"cells": [{"source": "é"}]}'.encode("latin-1"),
    "UTF-16": '{"cells": []}'.encode("utf-16-le")[1:],
    "a list": b"[]",
    "the format of 2013": b'{"worksheets": [{"cells": []}], "nbformat": 3}',
    "deep": b"[" * 100_000,
    "cells that are no list": b'{"cells": {}}',
}
ODD_CELLS: dict[str, Any] = {
    "no fields": {},
    "a number": 7,
    "a source of numbers": CELL | {"source": [1, 2, "x"]},
    "half a surrogate pair": CELL | {"source": "\ud800"},
    "metadata that is a list": CELL | {"metadata": []},
    "outputs that are text": CELL | {"outputs": "x"},
    "an unknown type": CELL | {"cell_type": "heading"},
    "an unknown key": CELL | {"surprise": 1},
    "the same id": CELL,
    "a huge source": CELL | {"source": "x" * (2 * CELL_CHARACTERS)},
}


@pytest.fixture
def released(tmp_path: Path) -> Path:
    path = tmp_path / "released.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("stub")]), path)
    return path


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_becomes_the_released_notebook_with_the_reason(tmp_path, released, what) -> None:
    path = tmp_path / "answer.ipynb"
    path.write_bytes(UNREADABLE[what])
    hand_in = read_hand_in("a", "s", path)
    notebook = readable_notebook(hand_in, released)
    assert "graded as an empty notebook" in notebook.cells[0].source
    assert notebook.cells[1].source == "stub"
    assert "answer.ipynb" in hand_in.reason
    assert path.read_bytes() == UNREADABLE[what]


def test_a_link_is_not_followed(tmp_path: Path, released: Path) -> None:
    (tmp_path / "answer.ipynb").symlink_to(released)
    hand_in = read_hand_in("a", "s", tmp_path / "answer.ipynb")
    assert "cannot be read" in hand_in.reason
    assert hand_in.reason in readable_notebook(hand_in, released).cells[0].source


@pytest.mark.parametrize("what", ODD_CELLS)
def test_an_odd_cell_becomes_a_well_formed_one(tmp_path: Path, released: Path, what: str) -> None:
    path = tmp_path / "answer.ipynb"
    path.write_text(json.dumps({"cells": [CELL, ODD_CELLS[what]], "nbformat": 77, "metadata": {"kernelspec": 3}}))
    hand_in = read_hand_in("a", "s", path)
    notebook = readable_notebook(hand_in, released)
    nbformat.validate(notebook)
    nbformat.writes(notebook).encode("utf-8")
    assert (hand_in.reason, hand_in.repairs) == ("", ())
    assert notebook.cells[0].source == "1"
    assert all(len(cell.source) < CELL_CHARACTERS + 100 for cell in notebook.cells)


def test_a_course_that_is_not_released_is_no_fault_of_the_student(tmp_path: Path) -> None:
    (tmp_path / "answer.ipynb").touch()
    with pytest.raises(OSError, match=r"missing\.ipynb"):
        readable_notebook(read_hand_in("a", "s", tmp_path / "answer.ipynb"), tmp_path / "missing.ipynb")
