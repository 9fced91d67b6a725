"""Whoever types what the texts say, in a copy of the project, gets an exercise and a pass whose tests succeed.

Both are added to one copy, so that the tests of the whole tree, which the texts name too, run once for both.
"""

import itertools
import shlex
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.packaging.copied_tree import copy_tree, environment_of
from tests.packaging.followed_text import commands, follow
from tests.packaging.warm_commands import WarmCommands, warm_commands

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
    with warm_commands(folder, environment_of(folder)) as started:
        type_what_the_texts_say(folder, started)


def type_what_the_texts_say(folder: Path, started: WarmCommands) -> None:
    def type_all(*lines: str) -> None:
        for line in lines:
            status, said = typed(line, started)
            assert status == 0, f"{line}\n{said}"

    assert typed(".venv/bin/python -m no_such_module", started)[0] == 1
    type_all(*commands(EXERCISE), WITH_TENSORS)
    python = [name for name in follow(PASS, folder) if name.endswith(".py")]
    type_all(
        *(f".venv/bin/python -m ruff {what} autograder {' '.join(python)}" for what in ("check", "format --check"))
    )
    type_all(*(f"{line} {OPTIONS}" for line in commands(PASS)))
    type_all(f".venv/bin/python -m pytest {OPTIONS} {' '.join(OF_EXERCISES.split())} -k '{NEW_OR_QUICK}'")
    type_all(".venv/bin/autograder release 04_fx_capture")


def typed(line: str, started: WarmCommands) -> tuple[int, str]:
    """Type a command of Python, before which variables may stand, as in `WHOLE=1 .venv/bin/python -m pytest`."""
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, words))
    program, *rest = words[len(variables) :]
    return started.run(rest if program == ".venv/bin/python" else [program, *rest], variables)
