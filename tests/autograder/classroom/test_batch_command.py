"""`autograder batch` says what is wrong before it begins, and grades what lies in the folder it is given."""

from pathlib import Path

import pytest

from autograder.classroom import batch_command
from autograder.classroom.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--assignment", "05_no_such"], "no assignment is called"),
        ([], "nothing was handed in"),
        (["--scheduler", "tcp://127.0.0.1:1"], "without --engine dask"),
    ],
)
def test_wrong_usage_is_said_in_one_sentence(monkeypatch, tmp_path: Path, capsys, arguments, words: str) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    assert main(["batch", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_class_is_not_graded_without_hidden_checks(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path))
    monkeypatch.setattr(batch_command, "hidden_folder", lambda: None)
    assert main(["batch"]) == 2
    assert "a student's installation" in capsys.readouterr().err


@pytest.mark.parametrize("slots", ["0", "-1", "many"])
def test_a_number_of_slots_that_cannot_be_meant_is_refused(capsys, slots: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["batch", "--slots", slots])
    assert stopped.value.code == 2
    assert "a whole number from 1 up expected" in capsys.readouterr().err
