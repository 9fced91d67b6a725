"""What students get holds no solution and no hidden case, and the check that says so can say otherwise."""

import json
import shutil
from pathlib import Path

import pytest

from scripts import image_check, student_tree
from tests.architecture.source_tree import ROOT


def hidden_files() -> list[Path]:
    """Return the files with hidden cases or answers."""
    return sorted(path for path in student_tree.HIDDEN.rglob("*.py") if path.stem != "__init__")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Write the fingerprints of all solutions and hidden cases, once."""
    path = tmp_path_factory.mktemp("secrets") / "fingerprints.json"
    student_tree.write_fingerprints(path)
    return path


def test_every_hidden_file_and_every_notebook_with_an_exercise_has_fingerprints():
    origins = {secret.origin for secret in student_tree.secrets()}

    names = {str(path.relative_to(student_tree.HIDDEN.parent)) for path in hidden_files()}
    assert names | {f"a solution in {path.name}" for path in ROOT.glob("notebooks/*/*.ipynb")} == origins
    assert {path.parent.parent.name for path in hidden_files()} >= {"hidden", "answers"}


def test_the_students_code_holds_no_solution_and_no_hidden_case(secrets, tmp_path):
    student_tree.copy_code(tmp_path / "student")

    assert image_check.main(secrets, tmp_path / "student") == 0
    autograder = tmp_path / "student" / "autograder"
    assert (autograder / "exercises" / "fx_rewrite" / "bias_silu_pass.py").is_file()
    assert {path.name for path in autograder.iterdir()} == {
        "__init__.py",
        "course_settings.py",
        "exercises",
        "host",
        "practice",
        "protocol",
        "worker",
    }


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*/*.ipynb")), ids=lambda path: path.stem)
def test_the_check_sees_a_notebook_with_its_solutions(secrets, tmp_path, path, capsys):
    shutil.copy(path, tmp_path)

    assert image_check.main(secrets, tmp_path) == 1
    assert path.name in capsys.readouterr().err


@pytest.mark.parametrize("path", hidden_files(), ids=lambda path: str(path.relative_to(student_tree.HIDDEN)))
def test_the_check_sees_a_hidden_case_under_another_name(secrets, tmp_path, path, capsys):
    shutil.copy(path, tmp_path / "notes.txt")

    assert image_check.main(secrets, tmp_path) == 1
    assert "notes.txt" in capsys.readouterr().err


@pytest.mark.parametrize("above", ["", "site-packages"])
@pytest.mark.parametrize("file", image_check.NOT_FOR_STUDENTS)
def test_the_check_sees_code_for_instructors(secrets, tmp_path, above, file, capsys):
    planted = tmp_path / above / file
    planted.parent.mkdir(parents=True)
    shutil.copy(ROOT / file, planted)

    assert image_check.main(secrets, tmp_path) == 1
    assert str(planted) in capsys.readouterr().err


def test_the_check_stays_out_of_what_is_the_kernels(secrets, tmp_path):
    planted = tmp_path / "proc" / image_check.NOT_FOR_STUDENTS[0]
    planted.parent.mkdir(parents=True)
    planted.touch()

    assert image_check.main(secrets, tmp_path) == 0


def test_too_few_fingerprints_pass_nothing(tmp_path):
    (tmp_path / "fingerprints.json").write_text(json.dumps({"a line": "a file"}), encoding="utf-8")

    assert image_check.main(tmp_path / "fingerprints.json", tmp_path) == 2
