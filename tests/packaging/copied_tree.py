"""A copy of the project's files, in which a test may type the commands of a text and change what it says."""

import os
import shutil
import sys
from pathlib import Path

from tests.architecture.source_tree import ROOT, tracked_files


def copy_tree(target: Path) -> Path:
    """Copy every file that git tracks to `target`, with this interpreter's environment as its `.venv`."""
    for name in tracked_files():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place)
    (target / ".venv").symlink_to(sys.prefix)
    return target


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of commands that are typed in a copy: they import from the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COURSE_WORK": str(folder / "work")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return environment
