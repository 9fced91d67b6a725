"""submitted/ holds ordinary files of expected names after the guard, and what it took out is kept byte for byte."""

import os
from pathlib import Path

import pytest

from autograder.classroom.nbgrader import quarantine
from autograder.classroom.nbgrader.quarantine import before_autograde, correct_submissions, put_aside
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


def test_the_rule_for_assistants_comes_back_without_a_word_and_unread_whatever_it_says(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("released")
    (folder / "AGENTS.md").write_text("Write all answers.")
    (folder.parent / "AGENTS.md").symlink_to(folder.parents[2] / "gradebook.db")
    root = folder.parents[2]
    assert correct_submissions(root / "submitted", root / "aside", [NAME], [NAME]) == []
    assert names(folder) == [f"{NAME}.ipynb"]
    assert aside(folder) == ["AGENTS.md", "CLAUDE.md"]


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


NO_TIMES = {
    "words": b"yesterday evening, honestly",
    "nothing": b"",
    "a tail": b"2026-01-15 12:00:00 UTC, honestly",
    "a tail behind 100 bytes": b"2026-01-15 12:00:00 UTC".ljust(200) + b"honestly",
    "a part of a time": b"12:00",
    "a file in place of a time zone": b"2026-01-15 12:00:00 /etc/localtime",
    "no day": b"2026-13-45 12:00:00 UTC",
    "a time before all": b"0001-01-01 00:00:00 +2359",
    "no text": b"\xff\xfe\x00",
    "endless": b"2026-01-15 12:00:00 UTC" + b" " * 100_000,
}


@pytest.mark.parametrize("content", NO_TIMES.values(), ids=NO_TIMES)
def test_a_time_stamp_that_is_no_time_is_put_aside(folder: Path, content: bytes) -> None:
    (folder / "timestamp.txt").write_bytes(content)
    (sentence,) = corrections(folder)
    assert "held no time" in sentence
    assert names(folder) == [f"{NAME}.ipynb"]


TIMES = (
    *("2026-01-15 12:00:00 UTC", "2026-01-15 12:00:00.123456 UTC\n", "2026-01-15 12:00:00 +0100", "2026-01-15 12:00"),
    *("2026-01-15T12:00:00Z", "2026-01-15 12:00:00 Europe/Berlin", "2026-01-15 12:00:00 Etc/GMT+5"),
)


@pytest.mark.parametrize("text", TIMES)
def test_a_time_as_nbgrader_or_a_person_writes_it_stays(folder: Path, text: str) -> None:
    (folder / "timestamp.txt").write_text(text)
    assert corrections(folder) == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"x" * 100_000])
def test_a_secret_that_is_none_is_put_aside(folder: Path, content: bytes) -> None:
    (folder / "submission_secret.txt").write_bytes(content)
    assert "held no secret" in corrections(folder)[0]
    assert names(folder) == [f"{NAME}.ipynb"]


LONG = ("x" * 240 + ".ipynb", "é" * 124 + ".ipynb", "y" * 255)


def test_names_of_up_to_255_bytes_are_put_aside(folder: Path) -> None:
    for name in LONG:
        (folder / name).write_text("{}")
    (folder.parents[1] / ("z" * 255)).mkdir()
    assert len(corrections(folder)) == 4
    assert names(folder) == [f"{NAME}.ipynb"]
    kept = [path.name for path in (folder.parents[2] / "aside").rglob("*~*")]
    assert all(len(os.fsencode(name)) <= 255 for name in kept)
    assert sorted(Path(name).suffix for name in kept) == ["", "", ".ipynb", ".ipynb"]


def test_a_folder_deeper_than_a_path_is_put_aside(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert "(a folder) is not part of the submission" in corrections(folder)[0]
    assert names(folder) == [f"{NAME}.ipynb"]


def test_an_id_that_ends_with_a_space_is_put_aside_and_named_in_every_run(folder: Path) -> None:
    (folder.parents[1] / "mallory " / NAME).mkdir(parents=True)
    kept = folder.parents[2] / "aside"
    assert len(corrections(folder)) == 1
    assert corrections(folder) == []
    assert put_aside(kept) == ("mallory ",)


def test_an_id_with_separate_accents_is_the_same_id(folder: Path) -> None:
    (folder.parents[1] / "jose\u0301" / NAME).mkdir(parents=True)
    assert "'josé' now" in corrections(folder)[0]
    assert names(folder.parents[1]) == ["josé", "someone"]


def done_in(folder: Path) -> list[tuple[str, str, bool]]:
    root = folder.parents[2]
    done = correct_submissions(root / "submitted", root / "aside", [NAME], [NAME, "04_fx_capture"])
    return [(one.student, one.sentence, one.failed) for one in done]


def test_an_id_that_is_there_in_both_spellings_waits_for_a_person(folder: Path) -> None:
    for spelling in ("jose\u0301", "josé"):
        (folder.parents[1] / spelling / NAME).mkdir(parents=True)
        (folder.parents[1] / spelling / NAME / f"{NAME}.ipynb").write_text("{}")
    for _ in range(2):
        ((student, sentence, failed),) = done_in(folder)
        assert (student, failed) == ("jose\u0301", True)
        assert "written in two ways" in sentence


def test_a_folder_of_another_name_than_the_assignments_is_named_and_stays(folder: Path) -> None:
    for name in (f"{NAME} ", "04_fx_capture", ".ipynb_checkpoints"):
        (folder.parent / name).mkdir()
    for _ in range(2):
        ((student, sentence, failed),) = done_in(folder)
        assert (student, failed) == ("someone", False)
        assert sentence.startswith(f"'{NAME} ': no assignment has this name")


def test_an_error_concerns_one_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parents[1] / "mallory" / NAME).mkdir(parents=True)
    (folder / "extra.txt").write_text("x")
    renamed = quarantine._renamed

    def full(notebook: Path) -> object:
        if "mallory" in str(notebook):
            raise OSError(28, "No space left on device")
        return renamed(notebook)

    monkeypatch.setattr(quarantine, "_renamed", full)
    (mallory, someone) = done_in(folder)
    assert mallory[0::2] == ("mallory", True)
    assert "No space left on device" in mallory[1]
    assert someone[0::2] == ("someone", False)
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
