"""Whoever types what the texts say, in a copy of the project, gets an exercise and a pass whose tests succeed.

Both are added to one copy, so that the tests of the whole tree, which the texts name too, run once for both.
"""

from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.packaging.copied_tree import copy_tree, typed
from tests.packaging.followed_text import commands, follow

PASS = (ROOT / "docs" / "add_a_pass.md").read_text(encoding="utf-8")
EXERCISE = (ROOT / "README.md").read_text(encoding="utf-8").split("## Add an exercise")[1].split("\n## ")[0]
WITH_TENSORS = ".venv/bin/autograder new-exercise 04_halve_rows --kind callable"
OF_EXERCISES = """tests/demo/test_class_files.py tests/notebooks/test_exercises.py
    tests/notebooks/test_map.py tests/notebooks/test_names.py tests/notebooks/test_style.py
    tests/autograder/practice/test_hints.py tests/autograder/exercises/test_answer_files.py
    tests/autograder/exercises/test_controls.py tests/autograder/classroom/nbgrader/test_release_checks.py"""
NEW_OR_QUICK = "count_nodes or halve_rows or not a_control_gets_exactly_its_marks"
OPTIONS = "-q -p no:xdist -p no:cacheprovider"


@pytest.mark.slow
def test_an_exercise_and_a_pass_that_follow_the_texts_pass_the_tests(tmp_path: Path) -> None:
    folder = copy_tree(tmp_path / "copy")

    def type_all(*lines: str) -> None:
        for line in lines:
            status, said = typed(line, folder)
            assert status == 0, f"{line}\n{said}"

    type_all(*commands(EXERCISE), WITH_TENSORS)
    python = [name for name in follow(PASS, folder) if name.endswith(".py")]
    type_all(
        *(f".venv/bin/python -m ruff {what} autograder {' '.join(python)}" for what in ("check", "format --check"))
    )
    type_all(*(f"{line} {OPTIONS}" for line in commands(PASS)))
    type_all(f".venv/bin/python -m pytest {OPTIONS} {' '.join(OF_EXERCISES.split())} -k '{NEW_OR_QUICK}'")
    type_all(".venv/bin/autograder release 04_fx_capture")
