"""Whatever a notebook says of itself, nbgrader gets the metadata of the released one, and people get notes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.nbgrader import releases
from autograder.classroom.nbgrader.releases import ReleasedCell
from autograder.classroom.nbgrader.repair import CELL_CHARACTERS, readable_notebook, rebuilt, repaired
from autograder.exercises.answer_cells import answers_in

ANSWER, CHECK = "05_bias_silu_pass", "05_bias_silu_pass_check"
FLAGS = {"schema_version": 3, "task": False}
RELEASED = {
    ANSWER: ReleasedCell(
        ANSWER,
        "code",
        "stub",
        {**FLAGS, "grade": False, "solution": True, "locked": False, "grade_id": ANSWER, "cell_type": "code"},
    ),
    CHECK: ReleasedCell(
        CHECK,
        "code",
        "check(...)",
        {
            **FLAGS,
            "grade": True,
            "solution": False,
            "locked": True,
            "grade_id": CHECK,
            "cell_type": "code",
            "points": 12.0,
        },
    ),
}
ODD_METADATA: list[Any] = [[], "x", 1, {}, {"grade_id": []}, {"grade_id": "someone's"}, {"grade_id": "x" * 100_000}]
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


def cell(name: str | None, source: str, kind: str = "code", **changes: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if name is not None:
        metadata["nbgrader"] = {k: v for k, v in RELEASED[name].metadata.items() if k != "cell_type"} | changes
    return {"cell_type": kind, "metadata": metadata, "source": source}


BARE = ((ANSWER, "def f(): pass"), (CHECK, "check(...)"))
HONEST = (cell(ANSWER, "def f(): pass"), cell(None, "text", "markdown"), cell(CHECK, "check(...)"))


def repair(*cells: dict[str, Any]) -> tuple[list[Any], tuple[str, ...], dict[str, Any]]:
    raw = {"cells": [*cells]}
    notebook = rebuilt(raw)
    notebook.cells, notes = repaired(notebook.cells, RELEASED)
    MetadataValidator().validate_nb(notebook)
    # what people are shown is what was graded
    assert answers_in(notebook)[0] == answers_in(raw)[0]
    return notebook.cells, notes, {c.metadata.nbgrader.grade_id: c for c in notebook.cells if "nbgrader" in c.metadata}


def test_an_honest_notebook_gets_no_note() -> None:
    cells, notes, by_id = repair(*HONEST)
    assert notes == ()
    assert [c.source for c in cells] == ["def f(): pass", "text", "check(...)"]
    assert by_id[CHECK].metadata.nbgrader.points == 12.0


def test_locked_cells_with_other_line_ends_are_not_edited() -> None:
    released = {**RELEASED, CHECK: replace(RELEASED[CHECK], source="import check\ncheck(...)")}
    for written in ("import check\r\ncheck(...)", "import check\rcheck(...)\r"):
        notebook = rebuilt({"cells": [HONEST[0], cell(CHECK, written)]})
        assert repaired(notebook.cells, released)[1] == ()


def test_metadata_that_the_grader_gave_back_is_not_changed_metadata() -> None:
    bare = [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name}}, "source": text} for name, text in BARE]
    cells, notes, by_id = repair(*bare)
    assert notes == ()
    assert by_id[CHECK].metadata.nbgrader.points == 12.0
    assert len(cells) == 2


def test_a_split_answer_is_joined_in_order() -> None:
    _, notes, by_id = repair(cell(ANSWER, "import x"), cell(CHECK, "check(...)"), cell(ANSWER, "def f(): pass"))
    assert by_id[ANSWER].source == "import x\ndef f(): pass"
    assert "split or copied" in notes[0]


def test_a_copy_of_a_locked_cell_is_removed() -> None:
    cells, notes, _ = repair(*HONEST, cell(CHECK, "12.0"))
    assert [c.source for c in cells] == ["def f(): pass", "text", "check(...)"]
    assert "more than once" in notes[0]


@pytest.mark.parametrize("version", [None, 0, 1, 2, 99, "three", [3]])
def test_a_foreign_schema_version_is_restored(version: Any) -> None:
    _, notes, by_id = repair(cell(ANSWER, "a", schema_version=version), HONEST[2])
    assert by_id[ANSWER].metadata.nbgrader.schema_version == 3
    assert "schema_version" in notes[0]


@pytest.mark.parametrize(
    "changes",
    [{"points": 400}, {"points": "nan"}, {"grade": False}, {"solution": True}, {"locked": False}, {"task": True}],
)
def test_points_and_flags_of_a_check_cell_are_restored(changes: dict[str, Any]) -> None:
    _, notes, by_id = repair(HONEST[0], cell(CHECK, "check(...)", **changes))
    assert dict(by_id[CHECK].metadata.nbgrader) == dict(RELEASED[CHECK].metadata)
    assert next(iter(changes)) in notes[0]


def test_an_answer_cannot_become_a_graded_cell() -> None:
    _, _, by_id = repair(cell(ANSWER, "12.0", grade=True, solution=False, points=12), HONEST[2])
    assert not by_id[ANSWER].metadata.nbgrader.grade
    assert "points" not in by_id[ANSWER].metadata.nbgrader


@pytest.mark.parametrize("kind", ["markdown", "raw", "made up"])
def test_a_changed_cell_type_is_restored(kind: str) -> None:
    _, notes, by_id = repair(cell(ANSWER, "def f(): pass", kind), cell(CHECK, "check(...)", kind))
    assert by_id[ANSWER].cell_type == by_id[CHECK].cell_type == "code"
    assert any("had become" in note for note in notes)


def test_a_deleted_check_cell_comes_back_behind_its_answer() -> None:
    cells, notes, by_id = repair(cell(None, "before"), HONEST[0], cell(None, "after"))
    assert [c.source for c in cells] == ["before", "def f(): pass", "check(...)", "after"]
    assert "put back" in notes[0]
    assert CHECK in by_id


def test_a_notebook_without_any_cell_gets_its_check_cells() -> None:
    cells, notes, _ = repair()
    assert [c.source for c in cells] == ["check(...)"]
    assert len(notes) == 2


@pytest.mark.parametrize("metadata", ODD_METADATA, ids=range(len(ODD_METADATA)))
def test_metadata_of_no_cell_of_this_notebook_is_dropped(metadata: Any) -> None:
    odd = {"cell_type": "code", "metadata": {"nbgrader": metadata}, "source": "x"}
    cells, notes, by_id = repair(odd, *HONEST)
    assert set(by_id) == {ANSWER, CHECK}
    assert cells[0].source == "x"
    assert len(notes[0]) < 200


def test_an_edited_check_cell_is_noted() -> None:
    _, notes, _ = repair(HONEST[0], cell(CHECK, "12.0"))
    assert "had been edited" in notes[0]


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


def other_points(points: float) -> dict[str, ReleasedCell]:
    """Return the release with other points of the check cell."""
    check = RELEASED[CHECK]
    return {**RELEASED, CHECK: replace(check, metadata={**check.metadata, "points": points})}


def notes_of(released: dict[str, ReleasedCell], earlier: tuple[dict[str, ReleasedCell], ...], *cells: dict[str, Any]):
    notebook = rebuilt({"cells": [*cells]})
    made, notes = repaired(notebook.cells, released, earlier)
    return notes, {c.metadata.nbgrader.grade_id: c.metadata.nbgrader.get("points") for c in made if c.metadata}


def test_a_notebook_as_it_was_handed_out_is_no_finding_and_gets_the_present_points() -> None:
    released, earlier = other_points(24.0), (RELEASED, other_points(6.0))
    for points in (6.0, 12.0, 24.0):
        notes, made = notes_of(released, earlier, HONEST[0], cell(CHECK, "check(...)", points=points))
        assert (notes, made[CHECK]) == ((), 24.0)
    assert "(points)" in notes_of(released, earlier, HONEST[0], cell(CHECK, "check(...)", points=400))[0][0]
    assert "(points)" in notes_of(released, (), *HONEST)[0][0], "which is in no release"


def test_a_question_that_came_after_the_notebook_was_handed_out_is_not_called_deleted() -> None:
    name = "05_later_check"
    added = {**RELEASED, name: ReleasedCell(name, "code", "check(...)", {**RELEASED[CHECK].metadata, "grade_id": name})}
    notes, made = notes_of(added, (RELEASED,), HONEST[0], HONEST[2])
    assert (notes, name in made) == ((), True)
    assert "put back" in notes_of(added, (), HONEST[0], HONEST[2])[0][0]
    notes, made = notes_of(
        RELEASED, (added,), *HONEST, {**HONEST[2], "metadata": {"nbgrader": dict(added[name].metadata)}}
    )
    assert (notes, name in made) == ((), False)


def test_a_locked_cell_as_an_earlier_release_had_it_is_not_edited() -> None:
    earlier = {**RELEASED, CHECK: replace(RELEASED[CHECK], source="check(1)")}
    assert notes_of(RELEASED, (earlier,), HONEST[0], cell(CHECK, "check(1)", points=12.0))[0] == ()
    assert "had been edited" in notes_of(RELEASED, (), HONEST[0], cell(CHECK, "check(1)"))[0][0]


def test_releases_are_kept_once_each_and_the_newest_comes_first(tmp_path: Path, monkeypatch) -> None:
    path, name = tmp_path / "releases.jsonl", "05_fx_rewrite"
    for points in (12.0, 12.0, 24.0, 12.0):
        monkeypatch.setattr(releases, "released_cells", lambda _, points=points: other_points(points))
        releases.keep_release(path, name, None)
    with path.open("a") as file:
        file.write('{"assignment": "05_fx')  # by a writer that was killed
    assert releases.releases_of(path, name) == (other_points(24.0), other_points(12.0))
    assert releases.releases_of(path, "04_fx_capture") == ()
