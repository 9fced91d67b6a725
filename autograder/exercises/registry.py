"""Find exercises by their id, and add their hidden part if it is installed."""

import difflib
import functools
import importlib
import importlib.util
from dataclasses import replace
from pathlib import Path

from autograder.exercises.lessons import HIDDEN, exercise_files, lesson_of, module_name
from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.exercise import Check, Exercise, HiddenPart


class UnknownExerciseError(LookupError):
    """No exercise has the given id."""

    exit_code = 2  # exit status of a command that raises it


@functools.cache
def all_exercises() -> tuple[str, ...]:
    """Return the ids of all exercises, in order."""
    return tuple(exercise_files())


def find(exercise_id: str, *, hidden: bool = False) -> Exercise:
    """Return the exercise with this id, with the imports of its set-up cell.

    `hidden` adds its hidden checks, if they are installed. Raises `UnknownExerciseError`.
    """
    if exercise_id not in all_exercises():
        near = difflib.get_close_matches(exercise_id, all_exercises(), n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(all_exercises())}."
        raise UnknownExerciseError(f"No exercise is called {exercise_id!r}; {hint}")
    exercise: Exercise = importlib.import_module(module_name(exercise_id)).EXERCISE
    part = hidden_part(exercise_id) if hidden else None
    extra: tuple[Check, ...] = tuple(replace(c, hidden=True) for c in part.checks) if part else ()
    setup = SETUP_CELLS[lesson_of(exercise_id)]
    return replace(exercise, id=exercise_id, setup=setup, checks=exercise.checks + extra)


def hidden_folder() -> Path | None:
    """Return the folder of the hidden cases, or None in a student's installation."""
    found = importlib.util.find_spec(HIDDEN)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def hidden_part(exercise_id: str) -> HiddenPart | None:
    """Return hidden checks and controls, or None if they are not installed."""
    if exercise_id not in all_exercises() or hidden_folder() is None:
        return None
    name = module_name(exercise_id, hidden=True)
    if importlib.util.find_spec(name.rpartition(".")[0]) is None or importlib.util.find_spec(name) is None:
        return None
    part: HiddenPart = importlib.import_module(name).HIDDEN
    return part


def of_assignment(assignment: str) -> tuple[str, ...]:
    """Return the ids of the exercises of one notebook, e.g. of `"05_fx_rewrite"`: those with its number."""
    return tuple(e for e in all_exercises() if e.split("_", 1)[0] == assignment.split("_", 1)[0])
