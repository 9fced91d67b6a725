"""Find exercises by file name, and add their hidden part where it is installed."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

from autograder.host.kit.exercise import Check, Control, Exercise, HiddenPart
from autograder.host.kit.quality.controls import all_controls

_ID = re.compile(r"\d\d_[a-z0-9_]+")


class UnknownExerciseError(LookupError):
    """No exercise has the given id."""


@functools.cache
def all_exercises() -> tuple[str, ...]:
    """The ids of all exercises, in order."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if _ID.fullmatch(p.stem)))


def find(exercise_id: str, *, hidden: bool = False) -> Exercise:
    """The exercise of that id, with ``hidden`` also its hidden checks.

    Raises `UnknownExerciseError`; a missing hidden part (a student's installation) adds nothing.
    """
    if exercise_id not in all_exercises():
        near = difflib.get_close_matches(exercise_id, all_exercises(), n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(all_exercises())}."
        raise UnknownExerciseError(f"No exercise is called {exercise_id!r}; {hint}")
    exercise: Exercise = importlib.import_module(f"autograder.host.exercises.{exercise_id}").EXERCISE
    part = hidden_part(exercise_id) if hidden else None
    extra: tuple[Check, ...] = tuple(replace(c, hidden=True) for c in part.checks) if part else ()
    return replace(exercise, checks=exercise.checks + extra)


def hidden_folder() -> Path | None:
    """Where the hidden cases are, or None in a student's installation."""
    found = importlib.util.find_spec("autograder.host.hidden")
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def hidden_part(exercise_id: str) -> HiddenPart | None:
    """Hidden checks and controls, or None where they are not installed."""
    name = f"autograder.host.hidden.{exercise_id}"
    if hidden_folder() is None or importlib.util.find_spec(name) is None:
        return None
    part: HiddenPart = importlib.import_module(name).HIDDEN
    return part


def controls(exercise_id: str) -> tuple[Control, ...]:
    """Answers of known marks, the standard ones of its kind among them; none in a student's installation."""
    part = hidden_part(exercise_id)
    return all_controls(find(exercise_id), part) if part else ()


def of_assignment(assignment: str) -> tuple[str, ...]:
    """The ids of the exercises of one notebook, e.g. of ``"05_fx_rewrite"``: those with its number."""
    return tuple(e for e in all_exercises() if e.split("_", 1)[0] == assignment.split("_", 1)[0])
