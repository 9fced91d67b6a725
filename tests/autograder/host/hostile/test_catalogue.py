"""The files of attacks, the table of them and the summary in the README agree."""

import ast

import pytest

from autograder.host.sandbox.levels import PROMISES
from tests.autograder.host.hostile import naive_grader
from tests.autograder.host.hostile.catalogue import (
    CLASSES,
    HOSTILE,
    README,
    attacks,
    read,
    summary,
    table,
    written_tables,
)


def test_the_written_tables_are_what_the_files_say():
    # to renew them: python -m tests.autograder.host.hostile.catalogue
    assert written_tables() == (table(), summary())


@pytest.mark.parametrize("level", PROMISES)
def test_the_readme_has_every_level_with_what_it_needs(level):
    row = f"| {level.value} {PROMISES[level].title} | {PROMISES[level].needs} |"

    assert row in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_of_attacks_has_a_file(cls):
    assert [attack.name for attack in attacks() if attack.cls == cls]


def test_every_proof_names_a_naive_grader_that_says_what_it_does():
    graders = {attack.grader for attack in attacks() if attack.grader != "process"}

    assert [name for name in sorted(graders) if not naive_grader.grader_named(name).__doc__] == []


def test_every_hostile_file_is_python_even_where_it_is_never_run_here():
    assert [path.name for path in HOSTILE.glob("*/*.py") if not ast.parse(path.read_text())] == []


def test_a_file_without_the_form_is_refused(tmp_path):
    (tmp_path / "vague.py").write_text('"""Does something bad."""\n')
    with pytest.raises(ValueError, match=r"vague\.py"):
        read(tmp_path / "vague.py")
