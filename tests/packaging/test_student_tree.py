"""What students get holds no solution and no hidden case, and the check that says so can say otherwise."""

from __future__ import annotations

import subprocess

import pytest

from scripts import student_tree
from tests.architecture.source_tree import ROOT


@pytest.fixture
def course(tmp_path):
    """Copy the code that students get, and write the fingerprints beside it."""
    student_tree.copy_course(tmp_path / "student" / "course")
    student_tree.write_fingerprints(tmp_path / "fingerprints.txt")
    return tmp_path


def image_check(course) -> subprocess.CompletedProcess[str]:
    """Run the check that the student image goes through on the copied tree."""
    command = [ROOT / "scripts" / "image_check.sh", course / "fingerprints.txt", course / "student"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_notebook_and_every_hidden_case_has_a_fingerprint():
    names = set(student_tree.fingerprints())
    with_solutions = {path for path in ROOT.glob("notebooks/*/*.ipynb") if any(student_tree.solutions(path))}

    assert {str(path.relative_to(ROOT)) for path in with_solutions} <= names
    assert {str(path.relative_to(ROOT)) for path in student_tree.HIDDEN.glob("[0-9]*.py")} <= names


def test_the_students_code_holds_no_solution_and_no_hidden_case(course):
    answer = image_check(course)

    assert answer.returncode == 0, answer.stderr
    assert not (course / "student" / "course" / "autograder" / "host" / "hidden").exists()
    assert (course / "student" / "course" / "autograder" / "host" / "exercises").is_dir()


@pytest.mark.parametrize("leak", ["solution", "hidden case", "hidden folder"])
def test_the_check_sees_a_leak(course, leak):
    notebook = next(path for path in sorted(ROOT.glob("notebooks/*/*.ipynb")) if any(student_tree.solutions(path)))
    if leak == "solution":
        (course / "student" / "leak.ipynb").write_text(notebook.read_text(encoding="utf-8"), encoding="utf-8")
    elif leak == "hidden case":
        text = next(student_tree.HIDDEN.glob("[0-9]*.py")).read_text(encoding="utf-8")
        (course / "student" / "notes.txt").write_text(text, encoding="utf-8")
    else:
        (course / "student" / "course" / "autograder" / "host" / "hidden").mkdir()
    answer = image_check(course)

    assert answer.returncode == 1
    assert "Solutions or hidden cases lie in" in answer.stderr
