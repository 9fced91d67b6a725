"""The command line: exit statuses, JSON, and sentences for wrong usage."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.classroom import batch_command, cli, hand_in
from autograder.classroom.cli import main
from autograder.exercises import all_exercises, find, of_assignment
from autograder.exercises.quality.controls import controls
from autograder.host.judge import not_graded
from autograder.host.records import SubmissionRecord

ROOT = Path(__file__).parents[3]


@pytest.fixture
def said(capsys):
    """Call the command line, which must end well, and return what it prints."""

    def call(*arguments):
        status = cli.main([str(argument) for argument in arguments])
        printed, complaints = capsys.readouterr()
        assert status == 0, complaints
        return printed

    return call


@pytest.fixture
def answer(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(next(c.answer for c in controls("04_read_a_graph") if c.name == "reference"))
    return path


def test_check_prints_a_record_that_reads_back(said, answer):
    record = SubmissionRecord.from_json(said("check", "04_read_a_graph", answer, "--json", "--seed", "3"))
    assert (record.points, record.max_points) == (6, 6)
    assert record.sandbox.level in (1, 2)


def test_without_hidden_checks_only_the_visible_share_is_assessed(said, answer):
    record = json.loads(said("check", "04_read_a_graph", answer, "--json", "--no-hidden"))
    assert not any(c["hidden"] for c in record["exercises"][0]["checks"])
    assert record["max_points"] < 6


def test_grade_reads_a_notebook_and_names_the_missing_answer(said, tmp_path):
    folder = tmp_path / "some_student" / "04_fx_capture"
    folder.mkdir(parents=True)
    (folder / "04_fx_capture.ipynb").write_text(json.dumps({"cells": []}))
    record = json.loads(said("grade", folder / "04_fx_capture.ipynb", "--json"))
    asked = of_assignment("04_fx_capture")
    possible = sum(find(exercise).points for exercise in asked)
    assert (record["student"], record["points"], record["max_points"]) == ("some_student", 0, possible)
    assert [e["status"] for e in record["exercises"]] == ["not_found"] * len(asked)


def test_grade_shows_the_speed_of_each_answer(tmp_path, monkeypatch):
    asked = []

    def grade(exercise, answers, **named):
        asked.append(named["show_speed"])
        return not_graded(exercise, "not graded here")

    monkeypatch.setattr(hand_in, "grade_exercise", grade)
    folder = tmp_path / "some_student" / "05_fx_rewrite"
    folder.mkdir(parents=True)
    (folder / "05_fx_rewrite.ipynb").write_text(json.dumps({"cells": []}))
    main(["grade", str(folder / "05_fx_rewrite.ipynb"), "--json"])
    assert asked == [True] * len(of_assignment("05_fx_rewrite"))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("check", "04_read_a_grap", "x.py"), 2, "did you mean 04_read_a_graph"),
        (("check", "04_read_a_graph", "/nowhere.py"), 3, "cannot be read"),
        (("grade", "/nowhere.ipynb"), 3, "cannot be read"),
        (("check", "04_read_a_graph"), 2, "usage"),
        (("check", "04_read_a_graph", __file__, "--device", "cuda:99"), 4, "is not on this machine"),
        (("check", "04_read_a_graph", __file__, "--sandbox", "5"), 4, "trust"),
    ],
)
def test_wrong_usage_and_unreadable_files_have_their_status_and_one_sentence(arguments, status, words, capsys):
    try:
        found = cli.main(list(arguments))
    except SystemExit as end:  # argparse
        found = end.code
    said = capsys.readouterr().err
    assert found == status, said
    assert words in said
    assert "Traceback" not in said


def test_the_command_ends_with_the_status_and_without_a_traceback():
    command = [sys.executable, "-m", "autograder", "check", "04_read_a_graph", "/nowhere.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 3
    assert done.stderr.startswith("autograder: ")


def test_exercises_lists_kinds_points_and_checks(said):
    rows = json.loads(said("exercises", "--json"))
    assert [r["id"] for r in rows] == list(all_exercises())
    assert {
        ("01_scaled_dot_product", "callable", 10),
        ("04_read_a_graph", "value", 6),
        ("05_bias_silu_pass", "graph", 12),
    } <= {(r["id"], r["kind"], r["points"]) for r in rows}
    assert all(c["points"] > 0 for r in rows for c in r["checks"])


def test_sandbox_says_its_level(said):
    assert "evel" in said("sandbox")


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
