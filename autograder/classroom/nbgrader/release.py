"""Build the students' notebooks: check the source, strip the solutions, and look whether anything leaked."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from autograder.classroom.nbgrader.cell_groups import exercises_without_notebook, notebook_problems
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.leaks import leaks, secret_fingerprints
from autograder.classroom.status import REFUSED, CommandError
from autograder.exercises.registry import hidden_folder


class ReleaseError(CommandError):
    """The release was refused; `problems` says why, one sentence each."""

    exit_code = REFUSED

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n  ".join([f"release refused, {len(problems)} problem(s):", *problems]))
        self.problems = tuple(problems)


def release(course: Course, assignments: Sequence[str] = ()) -> tuple[str, ...]:
    """Release `assignments`, by default all, and return their names.

    Raises `ReleaseError` before anything is written if a source is wrong, and after it if something leaked; then what
    was written must not be handed out. Raises `UsageError` for an unknown name, and `NbgraderError` if nbgrader fails.
    """
    chosen = course.chosen(assignments)
    hidden = required_hidden_folder()
    problems = [] if assignments else exercises_without_notebook(chosen)
    for name in chosen:
        notebook = json.loads((course.source / name / f"{name}.ipynb").read_text())
        problems += [f"{name}: {problem}" for problem in notebook_problems(notebook, name)]
    if problems:
        raise ReleaseError(problems)
    for name in chosen:
        course.do("generate_assignment", name)
    if (course.source / "README.md").is_file():
        shutil.copy(course.source / "README.md", course.release)
    found = leaks(course.release, secret_fingerprints(course.source, hidden))
    if found:
        raise ReleaseError(found)
    return chosen


def required_hidden_folder() -> Path:
    """Where the hidden cases are; raises `ReleaseError` in a student's installation, which has none."""
    found = hidden_folder()
    if found is None:
        raise ReleaseError(
            [
                "This is a student's installation: it has no hidden cases, so it cannot tell whether one leaked. "
                "Release from an instructor's checkout, or from the instructor image."
            ]
        )
    return found
