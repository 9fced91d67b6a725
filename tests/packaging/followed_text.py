"""What a text of the documentation tells its reader to write and to type."""

import re
from pathlib import Path

BLOCK = re.compile(r"^`([\w/.]+)`(?:, behind `([^`\n]+)`)?:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


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


def commands(text: str) -> list[str]:
    """Return the lines of the blocks of commands of `text`."""
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]
