"""Fail if a line of a solution or of a hidden case is on this machine: image_check.py FINGERPRINTS [ROOT].

It runs in the instructor image, as root, on a copy of the whole student image. Installed packages are not searched,
since they come from the package index.
Exit status: 0 nothing found, 1 a secret leaked, 2 the fingerprints cannot be used.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.classroom.nbgrader.leaks import fingerprints, texts_of

THE_KERNELS = {"proc", "sys", "dev"}
THE_INDEX = {"site-packages"}
# The folders of code that only instructors have, each by a file that it contains.
NOT_FOR_STUDENTS = (
    "autograder/exercises/hidden/__init__.py",
    "autograder/exercises/quality/__init__.py",
    "autograder/classroom/__init__.py",
    "demo/afternoon.py",
)
FEWEST = 10


def folders(root: Path, left_out: set[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yield every folder below `root` with the names of its files, except folders whose name is in `left_out`."""
    for folder, inside, names in os.walk(root):
        inside[:] = [name for name in inside if name not in left_out]
        yield Path(folder), names


def text_files(root: Path) -> Iterator[Path]:
    """Yield every readable text file below `root`."""
    for folder, names in folders(root, THE_KERNELS | THE_INDEX):
        paths = (folder / name for name in names)
        yield from (path for path in paths if path.is_file() and not path.is_symlink() and is_text(path))


def is_text(path: Path) -> bool:
    """Return whether a file is text, that is, has no zero byte."""
    with path.open("rb") as file:
        return b"\0" not in file.read(8192)


def leaks(root: Path, secrets: dict[str, str]) -> list[str]:
    """Return one sentence for each file below `root` that contains a secret or is code for instructors."""
    files = (folder / name for folder, names in folders(root, THE_KERNELS) for name in names)
    hidden = [f"{path}: code for instructors" for path in files if str(path).endswith(NOT_FOR_STUDENTS)]
    for path in text_files(root):
        texts = (text.splitlines() for text in texts_of(path))
        found = {one.text for lines in texts for one in fingerprints(lines, path.name)} & secrets.keys()
        if found:
            hidden.append(f"{path}: {len(found)} pieces of {', '.join(sorted({secrets[text] for text in found}))}")
    return hidden


def main(fingerprint_file: Path, root: Path) -> int:
    """Search `root` and return the exit status."""
    secrets: dict[str, str] = json.loads(fingerprint_file.read_text(encoding="utf-8"))
    if len(secrets) < FEWEST:
        print(f"{len(secrets)} fingerprints are too few to tell anything.", file=sys.stderr)
        return 2
    found = leaks(root, secrets)
    if found:
        print("Solutions or hidden cases lie in:", *found, sep="\n  ", file=sys.stderr)
        return 1
    print(f"None of {len(secrets)} pieces of solutions and hidden cases is below {root}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "/")))
