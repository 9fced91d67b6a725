"""`autograder new-exercise` adds what it says and nothing else, and an error changes nothing.

That what it adds passes the tests, `test_what_the_texts_add.py` shows.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.classroom.new_exercise import write_all, write_exercise
from autograder.classroom.status import UsageError
from tests.architecture.source_tree import ROOT

ID, NOTEBOOK = "04_count_nodes", Path("notebooks/04_fx_capture/04_fx_capture.ipynb")
NEEDED = (  # by the command, where no test runs
    "autograder/host/draw.py",
    "autograder/exercises/hidden/__init__.py",
    str(NOTEBOOK),
    "tests/submissions/honest/as_taught.py",
    "tests/submissions/mistaken/some_of_each.py",
    "tests/submissions/mistaken/untidy.py",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the files that the command reads and changes."""
    for name in NEEDED:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((ROOT / name).read_bytes())
    for name in ("exercises/fx_capture", "exercises/hidden/fx_capture", "exercises/hidden/answers/fx_capture"):
        (tmp_path / "autograder" / name).mkdir(parents=True)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes, without those of git."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_only_new_cells_are_added_before_the_summary(checkout: Path) -> None:
    before = json.loads((checkout / NOTEBOOK).read_text("utf-8"))["cells"]
    files = write_exercise(ID, checkout=checkout)
    after = json.loads((checkout / NOTEBOOK).read_text("utf-8"))["cells"]

    assert [*after[: len(before) - 1], after[-1]] == before
    assert len(after) == len(before) + 5
    assert set(contents(checkout)) - set(NEEDED) == {str(path) for path in files} - set(NEEDED)
    assert len(set(map(str, files)) - set(NEEDED)) == 4


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("count_nodes", "is no id"),
        ("04_Count", "is no id"),
        ("04_class", "is no id"),
        ("04_len", "is no id"),
        ("04_two__nodes", "is no id"),
        ("../04_nodes", "is no id"),
        ("77_count_nodes", "there is no lesson 77"),
        ("05_count_nodes", "05_fx_rewrite.ipynb and the hidden cases are not here"),
        ("04_draw", "is taken by autograder/host/draw.py"),
        ("04_traced", "is used by the cell"),
    ],
)
def test_an_id_that_cannot_be_is_refused_in_a_sentence(checkout: Path, asked: str, says: str) -> None:
    before = contents(checkout)
    with pytest.raises(UsageError, match=re.escape(says)):
        write_exercise(asked, checkout=checkout)
    assert contents(checkout) == before


def test_a_second_run_is_refused(checkout: Path) -> None:
    write_exercise(ID, checkout=checkout)
    before = contents(checkout)
    with pytest.raises(UsageError, match="is taken by"):
        write_exercise(ID, checkout=checkout)
    assert contents(checkout) == before


def _no_summary(checkout: Path) -> None:
    notebook = json.loads((checkout / NOTEBOOK).read_text("utf-8"))
    (checkout / NOTEBOOK).write_text(json.dumps({**notebook, "cells": notebook["cells"][:-1]}), "utf-8")


def _no_line_in_the_class(checkout: Path) -> None:
    path = checkout / "tests/submissions/mistaken/some_of_each.py"
    path.write_text(re.sub(r"^# %% \w+ 04_.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE), "utf-8")


def _not_committed(checkout: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(checkout), *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("-c", "user.name=x", "-c", "user.email=x", "commit", "--no-verify", "-m", "x")
    (checkout / NOTEBOOK).write_text((checkout / NOTEBOOK).read_text("utf-8") + "\n", "utf-8")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_no_summary, "does not end with the cell 'summary'"),
        (_no_line_in_the_class, "some_of_each.py has no line of lesson 04"),
        (_not_committed, "04_fx_capture.ipynb has changes that are not committed"),
    ],
)
def test_a_checkout_that_is_not_as_expected_is_left_alone(
    checkout: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(checkout)
    before = contents(checkout)
    with pytest.raises(UsageError, match=says):
        write_exercise(ID, checkout=checkout)
    assert contents(checkout) == before


def test_if_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "folder.txt").mkdir()
    before = contents(tmp_path)
    for last in ("folder.txt", "missing/new.txt"):
        with pytest.raises(OSError, match=r"folder\.txt|new\.txt"):
            write_all({tmp_path / name: "new" for name in ("old.txt", "new.txt", last)})
        assert contents(tmp_path) == before


def test_if_the_last_file_cannot_be_moved_the_others_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.txt").write_text("old")
    move, before = Path.replace, contents(tmp_path)

    def moved(path: Path, target: Path) -> Path:
        if target.name == "last.txt":
            raise OSError("the disk is gone")
        return move(path, target)

    monkeypatch.setattr(Path, "replace", moved)
    with pytest.raises(OSError, match="the disk is gone"):
        write_all({tmp_path / name: "new" for name in ("old.txt", "new.txt", "last.txt")})
    assert contents(tmp_path) == before
