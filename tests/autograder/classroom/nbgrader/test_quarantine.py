"""submitted/ holds ordinary files of expected names after the guard, and what it took out is kept byte for byte."""

import os
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.quarantine import before_autograde, correct_submissions
from autograder.classroom.notes import notes_for

NAME = "05_fx_rewrite"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "submitted" / "someone" / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text("{}")
    (tmp_path / "gradebook.db").write_text("all marks")
    return folder


def corrections(folder: Path) -> list[str]:
    root = folder.parents[2]
    return [g.sentence for g in correct_submissions(root / "submitted", root / "aside", [NAME])]


def aside(folder: Path) -> list[str]:
    kept = folder.parents[2] / "aside"
    return sorted(p.name.split("~")[-1] for p in kept.rglob("*~*"))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_an_ordinary_submission_stays_as_it_is(folder: Path) -> None:
    (folder / "timestamp.txt").write_text("2026-01-15 12:00:00 UTC")
    assert corrections(folder) == []
    assert names(folder) == [f"{NAME}.ipynb", "timestamp.txt"]


@pytest.mark.parametrize("target", ["../../../gradebook.db", "/", "/etc/passwd", "nowhere"])
def test_a_link_is_moved_and_not_followed(folder: Path, target: str) -> None:
    (folder / "notes.txt").symlink_to(target)
    (sentence,) = corrections(folder)
    assert "a link to" in sentence
    assert names(folder) == [f"{NAME}.ipynb"]
    assert (folder.parents[2] / "gradebook.db").read_text() == "all marks"


def test_a_notebook_that_is_a_link_counts_as_not_handed_in(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").unlink()
    (folder / f"{NAME}.ipynb").symlink_to("../../../gradebook.db")
    sentences = corrections(folder)
    assert "was not handed in" in sentences[-1]
    assert (folder / f"{NAME}.ipynb").read_text() == ""
    assert not (folder / f"{NAME}.ipynb").is_symlink()


def test_a_hard_link_a_pipe_and_a_folder_are_put_aside(folder: Path) -> None:
    os.link(folder.parents[2] / "gradebook.db", folder / "timestamp.txt")
    os.mkfifo(folder / "pipe")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("allclose = lambda *a: True")
    assert len(corrections(folder)) == 3
    assert aside(folder) == ["pipe", "timestamp.txt", "torch"]
    assert names(folder) == [f"{NAME}.ipynb"]


def test_a_hard_link_to_another_file_is_no_notebook(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").unlink()
    os.link(folder.parents[2] / "gradebook.db", folder / f"{NAME}.ipynb")
    assert "was not handed in" in corrections(folder)[-1]
    assert (folder / f"{NAME}.ipynb").read_text() == ""


def test_what_tools_leave_behind_is_put_aside_without_a_word(folder: Path) -> None:
    (folder / ".ipynb_checkpoints").mkdir()
    assert corrections(folder) == []
    assert names(folder) == [f"{NAME}.ipynb"]


def test_the_only_notebook_of_another_name_is_taken(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").rename(folder / f"{NAME} (1).ipynb")
    (sentence,) = corrections(folder)
    assert f"{NAME} (1).ipynb" in sentence
    assert names(folder) == [f"{NAME}.ipynb"]
    assert (folder / f"{NAME}.ipynb").read_text() == "{}"


def test_of_two_notebooks_of_other_names_none_is_taken(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").rename(folder / "a.ipynb")
    (folder / "b.ipynb").write_text("{}")
    assert "was not handed in" in corrections(folder)[-1]
    assert aside(folder) == ["a.ipynb", "b.ipynb"]


def test_a_time_stamp_that_is_no_time_is_put_aside(folder: Path) -> None:
    (folder / "timestamp.txt").write_text("yesterday evening, honestly")
    (sentence,) = corrections(folder)
    assert "held no time" in sentence
    assert names(folder) == [f"{NAME}.ipynb"]


@pytest.mark.parametrize("name", ["*", "-force", "a[b]", "..x", ".hidden"])
def test_a_folder_that_is_no_students_is_put_aside(folder: Path, name: str) -> None:
    (folder.parents[1] / name).mkdir()
    assert any("not a student's folder" in s for s in corrections(folder))
    assert names(folder.parents[1]) == ["someone"]


def test_a_link_in_place_of_a_student_or_an_assignment_is_put_aside(folder: Path) -> None:
    (folder.parents[1] / "twin").symlink_to("someone")
    (folder.parents[1] / "other").mkdir()
    (folder.parents[1] / "other" / NAME).symlink_to(folder)
    corrections(folder)
    assert names(folder.parents[1]) == ["other", "someone"]
    assert (folder.parents[1] / "other" / NAME / f"{NAME}.ipynb").read_text() == ""


def test_notes_belong_to_the_notebook_that_was_there(folder: Path) -> None:
    root = folder.parents[2]
    (folder / "extra.txt").write_text("x")
    corrections(folder)
    assert corrections(folder) == []
    notebook = folder / f"{NAME}.ipynb"
    assert "extra.txt" in notes_for(notebook, root / "aside")[0]
    notebook.write_text('{"cells": []}')
    assert notes_for(notebook, root / "aside") == ()


def test_before_autograde_leaves_notebooks_and_takes_links(folder: Path) -> None:
    (folder / "notes.txt").symlink_to("../../../gradebook.db")
    before_autograde(assignment=NAME, student="*", notebooks=[str(folder / f"{NAME}.ipynb")])
    assert names(folder) == [f"{NAME}.ipynb"]
    assert aside(folder) == ["notes.txt"]


def test_links_that_were_put_aside_lead_nowhere_any_more(folder: Path) -> None:
    (folder / "data").symlink_to("/")
    (folder / "more").mkdir()
    (folder / "more" / "deep").symlink_to("/")
    corrections(folder)
    kept = folder.parents[2] / "aside"
    assert not [p for p in kept.rglob("*") if p.is_symlink()]
    assert "Here was a link to '/'.\n" in [p.read_text() for p in kept.rglob("*deep")]
