"""Build the students' notebooks: check the source, strip the solutions, and look whether anything leaked.

    python -m autograder.classroom.nbgrader.release [ASSIGNMENT ...]

Exit status: 0 released · 2 an unknown assignment · 3 refused, with one sentence a problem · 4 nbgrader failed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.classroom.nbgrader.cell_groups import exercises_without_notebook, notebook_problems
from autograder.classroom.nbgrader.course import Course, NbgraderError, open_course
from autograder.classroom.nbgrader.leaks import leaks, secret_fingerprints
from autograder.exercises.registry import hidden_folder

RELEASED, WRONG_USAGE, REFUSED, FAILED = 0, 2, 3, 4


class ReleaseError(Exception):
    """The release was refused; ``problems`` says why, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def release(course: Course, assignments: Sequence[str] = ()) -> tuple[str, ...]:
    """Release ``assignments``, by default all, and return their names.

    Raises `ReleaseError` before anything is written if a source is wrong, and after it if something leaked; then what
    was written must not be handed out. Raises `NbgraderError` if nbgrader fails.
    """
    hidden = required_hidden_folder()
    chosen = tuple(assignments) or course.assignments
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


def main(arguments: Sequence[str]) -> int:
    """Release from the command line."""
    course = open_course()
    unknown = [name for name in arguments if name not in course.assignments]
    if unknown:
        print(
            f"release: no assignment is called {unknown[0]!r}; there are {', '.join(course.assignments)}.",
            file=sys.stderr,
        )
        return WRONG_USAGE
    try:
        released = release(course, arguments)
    except ReleaseError as error:
        print(f"release: refused, {len(error.problems)} problem(s):", *error.problems, sep="\n  ", file=sys.stderr)
        return REFUSED
    except NbgraderError as error:
        print(f"release: {error}", file=sys.stderr)
        return FAILED
    print(*(f"released {course.release / name / name}.ipynb" for name in released), sep="\n")
    print("To hand them out through nbgrader's exchange: nbgrader release_assignment NAME, once for each.")
    return RELEASED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
