"""A copy of the project's files, in which a test may type the commands of a text and change what it says."""

import os
import shlex
import shutil
import subprocess
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


def typed(command: str, folder: Path) -> tuple[int, str]:
    """Type a command in a copy; return its exit status and what it printed. It imports from the copy.

    Variables may stand before the command, as in `WHOLE=1 make test`.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder), "COURSE_WORK": str(folder / "work")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        ["env", *shlex.split(command)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
