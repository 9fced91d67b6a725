"""Whoever follows `docs/add_a_pass.md` literally, in a copy of the project, gets a pass whose tests succeed."""

import re
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.packaging.copied_tree import copy_tree, typed

TEXT = (ROOT / "docs" / "add_a_pass.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^`([\w/.]+)`(?:, behind `([^`\n]+)`)?:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = [
    line for block in re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]


def follow(text: str, folder: Path) -> list[str]:
    """Write each block of `text` to its file in `folder`, or behind the line that it names; return the files."""
    files = []
    for name, line, block in BLOCK.findall(text):
        path = folder / name
        if line:
            before = path.read_text(encoding="utf-8")
            assert before.count(f"\n{line}\n") == 1, f"{name} has the line {line!r} not exactly once"
            path.write_text(before.replace(f"\n{line}\n", f"\n{line}\n{block}"), encoding="utf-8")
        else:
            assert not path.exists(), f"{name} exists"
            path.write_text(block, encoding="utf-8")
        files.append(name)
    return files


def test_every_block_of_python_has_its_place() -> None:
    assert len(BLOCK.findall(TEXT)) == TEXT.count("```python") >= 6
    assert all(command.startswith(".venv/bin/python -m pytest ") for command in COMMANDS)


def test_a_line_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(AssertionError, match="not exactly once"):
        follow("`a.py`, behind `y = 1`:\n\n```python\nz = 1\n```\n", tmp_path)


@pytest.mark.slow
def test_the_pass_of_the_text_is_found_by_all_that_lists_passes_and_its_tests_succeed(tmp_path: Path) -> None:
    folder = copy_tree(tmp_path / "copy")
    files = follow(TEXT, folder)

    python = [name for name in files if name.endswith(".py")]
    lint = [f".venv/bin/python -m ruff {what} {' '.join(python)}" for what in ("check", "format --check")]
    for command in [*lint, *(f"{command} -q -p no:xdist -p no:cacheprovider" for command in COMMANDS)]:
        status, said = typed(command, folder)
        assert status == 0, f"{command}\n{said}"
