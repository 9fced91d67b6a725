"""Make a member's hand-in: the released notebooks with the answers filled in, as JupyterLab would save them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from autograder.exercises import of_assignment
from demo.class_file import ClassFileError, Member
from demo.damage import damaged

TIMESTAMP = "2026-01-15 12:00:00 UTC"


def hand_in(member: Member, release: Path, submitted: Path) -> None:
    """Write every assignment that ``member`` answered below ``submitted/NAME``.

    Raises `ClassFileError` if an answer belongs to no released notebook.
    """
    left = set(member.answers)
    for folder in sorted(path for path in release.iterdir() if path.is_dir()):
        own = [exercise for exercise in of_assignment(folder.name) if exercise in member.answers]
        if not own:
            continue
        left -= set(own)
        notebook = json.loads((folder / f"{folder.name}.ipynb").read_text(encoding="utf-8"))
        for exercise in own:
            _fill(notebook, exercise, member.answers[exercise])
        target = submitted / member.name / folder.name
        target.mkdir(parents=True)
        (target / f"{folder.name}.ipynb").write_text(json.dumps(notebook, indent=1), encoding="utf-8")
        (target / "timestamp.txt").write_text(TIMESTAMP)
        for what in member.damage.get(folder.name, ()):
            damaged(target, what)
    if left:
        raise ClassFileError(f"{member.name}: no released notebook has {', '.join(sorted(left))}.")


def _fill(notebook: dict[str, Any], exercise: str, parts: tuple[str, ...]) -> None:
    """Put the answer into its cell; further parts into copies of the cell, metadata and all, behind it."""
    cells = notebook["cells"]
    at = next(i for i, c in enumerate(cells) if c["metadata"].get("nbgrader", {}).get("grade_id") == exercise)
    for number, part in enumerate(parts):
        cell = copy.deepcopy(cells[at])
        cell["source"] = part.splitlines(keepends=True)
        if "id" in cell and number:
            cell["id"] = f"{cell['id'][:50]}-{number}"
        cells[at + number : at + number + (number == 0)] = [cell]
