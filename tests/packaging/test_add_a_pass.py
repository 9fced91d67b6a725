"""`docs/add_a_pass.md` can be followed literally; `test_what_the_texts_add.py` follows it."""

from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.packaging.followed_text import BLOCK, commands, follow

TEXT = (ROOT / "docs" / "add_a_pass.md").read_text(encoding="utf-8")


def test_every_block_of_python_has_its_place() -> None:
    assert len(BLOCK.findall(TEXT)) == TEXT.count("```python") >= 6
    typed = [command.removeprefix("WHOLE=1 ") for command in commands(TEXT)]
    assert all(command.startswith(".venv/bin/python -m pytest ") for command in typed)


def test_it_runs_the_tests_of_the_whole_tree() -> None:
    assert ".venv/bin/python -m pytest tests/architecture" in commands(TEXT)


def test_a_line_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(AssertionError, match="not exactly once"):
        follow("`a.py`, behind `y = 1`:\n\n```python\nz = 1\n```\n", tmp_path)
