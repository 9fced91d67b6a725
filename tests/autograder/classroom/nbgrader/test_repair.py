"""Whatever a notebook says of itself, nbgrader gets the metadata of the released one, and people get notes."""

from typing import Any

import pytest
from nbgrader.nbgraderformat import MetadataValidator

from autograder.classroom.nbgrader.repair import ReleasedCell, rebuilt, repaired
from autograder.classroom.submission import answers_in

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


def cell(name: str | None, source: str, kind: str = "code", **changes: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if name is not None:
        metadata["nbgrader"] = {k: v for k, v in RELEASED[name].metadata.items() if k != "cell_type"} | changes
    return {"cell_type": kind, "metadata": metadata, "source": source}


HONEST = (cell(ANSWER, "def f(): pass"), cell(None, "text", "markdown"), cell(CHECK, "check(...)"))
ODD_METADATA: list[Any] = [[], "x", 1, {}, {"grade_id": []}, {"grade_id": "someone's"}, {"grade_id": "x" * 100_000}]


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
