"""Copy what students may have into a folder: student_tree.py FOLDER, after `make release`.

FOLDER/course            course_lib and the autograder without its hidden cases
FOLDER/notebooks         the released notebooks, without solutions
FOLDER/fingerprints.txt  lines that stand only in solutions and hidden cases: none may lie in the two folders beside it
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASED = ROOT / "work" / "release"
HIDDEN = ROOT / "autograder" / "host" / "hidden"
COURSE = ("course_lib", "autograder", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "LICENSE-notebooks")
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)
# Shorter lines ("return graph") stand in many places.
SHORTEST_FINGERPRINT = 24


def solutions(notebook: Path) -> Iterator[str]:
    """Yield the text between the solution marks of each cell."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        yield from SOLUTION.findall("".join(cell["source"]))


def lines_of(text: str) -> set[str]:
    """Return the lines of `text` that are long enough to be told apart."""
    return {line.strip() for line in text.splitlines() if len(line.strip()) >= SHORTEST_FINGERPRINT}


def open_lines() -> set[str]:
    """Return the lines that students may see anyway: those of the code they get."""
    files = (path for folder in ("course_lib", "autograder") for path in (ROOT / folder).rglob("*.py"))
    return {line for path in files if HIDDEN not in path.parents for line in lines_of(path.read_text(encoding="utf-8"))}


def fingerprints() -> dict[str, set[str]]:
    """Return for each notebook and each file of hidden cases the lines that stand nowhere else.

    A file without such a line could leak unseen, which is a ValueError.
    """
    secret = {path: lines_of("\n".join(solutions(path))) for path in sorted(ROOT.glob("notebooks/*/*.ipynb"))}
    hidden = {path: lines_of(path.read_text(encoding="utf-8")) for path in sorted(HIDDEN.glob("[0-9]*.py"))}
    known = open_lines()
    found = {str(path.relative_to(ROOT)): lines - known for path, lines in (secret | hidden).items()}
    for name, lines in found.items():
        if not lines:
            raise ValueError(f"No line of {name} is its own, so nobody could see whether it leaked.")
    return found


def write_fingerprints(path: Path) -> int:
    """Write the fingerprints one a line, each also as it looks inside a notebook's JSON; return how many there are."""
    lines = {line for found in fingerprints().values() for line in found}
    in_json = {json.dumps(line, ensure_ascii=False)[1:-1] for line in lines}
    path.write_text("\n".join(sorted(lines | in_json)) + "\n", encoding="utf-8")
    return len(lines)


def copy_course(folder: Path) -> None:
    """Copy the code that students get into `folder`."""
    folder.mkdir(parents=True)
    for name in COURSE:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("hidden", "__pycache__", "*.egg-info")
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)


def main(folder: Path) -> None:
    """Fill `folder`, which must not exist yet."""
    copy_course(folder / "course")
    shutil.copytree(RELEASED, folder / "notebooks")
    count = write_fingerprints(folder / "fingerprints.txt")
    print(f"{folder}: {count} fingerprints of solutions and hidden cases")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
