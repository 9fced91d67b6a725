"""Answers that the course has already, for members of the class who answer like it: nobody writes them twice."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.classroom.nbgrader.markers import with_solutions
from autograder.exercises.registry import hidden_part

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def solution(exercise: str, notebooks: Path = NOTEBOOKS) -> str:
    """The answer cell of ``exercise`` as the notebook with solutions has it; raises `LookupError` if none does."""
    for path in sorted(notebooks.glob(f"{exercise[:2]}_*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
                return with_solutions("".join(cell["source"]))
    raise LookupError(f"no notebook has an answer cell of {exercise}.")


def control(exercise: str, name: str) -> str:
    """The answer of the exercise's own control of that name; raises `LookupError` if it has none."""
    part = hidden_part(exercise)
    known = {one.name: one.answer for one in part.controls} if part else {}
    if name not in known:
        raise LookupError(f"{exercise} has no control {name!r}; there are {', '.join(known) or 'none'}.")
    return known[name].strip("\n")
