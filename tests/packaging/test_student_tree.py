"""What students get holds no solution and no hidden case, and the check that says so can say otherwise."""

from __future__ import annotations

import json
import shutil

import pytest

from scripts import image_check, student_tree
from tests.architecture.source_tree import ROOT


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Write the fingerprints of all solutions and hidden cases, once."""
    path = tmp_path_factory.mktemp("secrets") / "fingerprints.json"
    student_tree.write_fingerprints(path)
    return path


def test_every_hidden_file_and_every_notebook_with_an_exercise_has_fingerprints():
    origins = " ".join({secret.origin for secret in student_tree.secrets()})

    for path in [*student_tree.HIDDEN.glob("[0-9]*.py"), *ROOT.glob("notebooks/*/*.ipynb")]:
        assert path.name in origins


def test_the_students_code_holds_no_solution_and_no_hidden_case(secrets, tmp_path):
    student_tree.copy_code(tmp_path / "student")

    assert image_check.main(secrets, tmp_path / "student") == 0
    assert (tmp_path / "student" / "autograder" / "host" / "exercises").is_dir()
    assert not (tmp_path / "student" / "autograder" / "host" / "hidden").exists()


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*/*.ipynb")), ids=lambda path: path.stem)
def test_the_check_sees_a_notebook_with_its_solutions(secrets, tmp_path, path, capsys):
    shutil.copy(path, tmp_path)

    assert image_check.main(secrets, tmp_path) == 1
    assert path.name in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(student_tree.HIDDEN.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_the_check_sees_a_hidden_case_under_another_name(secrets, tmp_path, path, capsys):
    shutil.copy(path, tmp_path / "notes.txt")

    assert image_check.main(secrets, tmp_path) == 1
    assert "notes.txt" in capsys.readouterr().err


@pytest.mark.parametrize("above", ["", "site-packages"])
def test_the_check_sees_a_folder_of_hidden_cases(secrets, tmp_path, above):
    (tmp_path / above / "autograder" / "host" / "hidden").mkdir(parents=True)

    assert image_check.main(secrets, tmp_path) == 1


def test_the_check_stays_out_of_what_is_the_kernels(secrets, tmp_path):
    (tmp_path / "proc" / "autograder" / "host" / "hidden").mkdir(parents=True)

    assert image_check.main(secrets, tmp_path) == 0


def test_too_few_fingerprints_pass_nothing(tmp_path):
    (tmp_path / "fingerprints.json").write_text(json.dumps({"a line": "a file"}), encoding="utf-8")

    assert image_check.main(tmp_path / "fingerprints.json", tmp_path) == 2
