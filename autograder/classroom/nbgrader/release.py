"""Build the students' notebooks: check the source, remove the solutions, and check that no secret leaked."""

import ast
import contextlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.api import MissingEntry

from autograder.classroom.assistants import write_rule
from autograder.classroom.nbgrader.course import Course, NbgraderError, gradebook_copy
from autograder.classroom.nbgrader.dropped import dropped_exercises, enter_dropped
from autograder.classroom.nbgrader.leaks import leaks, secret_fingerprints
from autograder.classroom.nbgrader.markers import marker_problems, without_solutions
from autograder.classroom.nbgrader.releases import FILE as RELEASES
from autograder.classroom.nbgrader.releases import keep_release
from autograder.classroom.status import REFUSED, CommandError
from autograder.classroom.term.course_texts import fit_notebook, fitted_map
from autograder.classroom.term.due_dates import enter_due_dates
from autograder.classroom.whole_files import write_whole
from autograder.exercises import all_exercises, find, of_assignment
from autograder.exercises.answer_cells import CHECK
from autograder.exercises.registry import hidden_folder
from autograder.host.exercise import Exercise
from autograder.host.setup_imports import imports
from autograder.host.source_text import tree_of

Cell = Mapping[str, Any]
_ANSWER = {"grade": False, "solution": True, "locked": False, "task": False}
_CHECK_CELL = {"grade": True, "solution": False, "locked": True, "task": False}
_LOCKED_TEXT = {"grade": False, "solution": False, "locked": True, "task": False}  # such as a rubric


class ReleaseError(CommandError):
    """The release was refused; `problems` says why, one sentence each."""

    exit_code = REFUSED

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n  ".join([f"release refused, {len(problems)} problem(s):", *problems]))
        self.problems = tuple(problems)


def release(course: Course, assignments: Sequence[str] = ()) -> tuple[str, ...]:
    """Release `assignments`, by default all, and return their names.

    Raises `ReleaseError` if a source is wrong, if a secret would leak, or if a notebook that students have handed in
    got other cells. Raises `UsageError` for an unknown name, `SettingsError` for a wrong setting, and `NbgraderError`
    if nbgrader fails. Then nothing has changed, neither a released file nor the gradebook: the notebooks are made in a
    new folder, first with a copy of the gradebook.
    """
    chosen = course.chosen(assignments)
    dropped_exercises(course)  # raises before anything is written
    hidden = required_hidden_folder()
    problems = [] if assignments else exercises_without_notebook(course.sources)
    for name in chosen:
        notebook = json.loads((course.source / name / f"{name}.ipynb").read_text(encoding="utf-8"))
        problems += [f"{name}: {problem}" for problem in notebook_problems(notebook, name)]
    if problems:
        raise ReleaseError(problems)
    course.release.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=course.release.parent, prefix=".release.") as folder:  # on the same disk
        made = Path(folder) / "made"
        _generate(course.elsewhere(made, gradebook_copy(course, Path(folder) / "gradebook.db")), chosen)
        if found := leaks(made, secret_fingerprints(course.source, hidden)):
            raise ReleaseError(found)
        _keep_cells(course, chosen)  # of a release from before they were kept
        _generate(course.elsewhere(made), chosen)
        _keep_cells(course, chosen)
        for name in chosen:
            fit_notebook(made / name / f"{name}.ipynb", course.source, course.assignments, course.rules())
            write_rule(made / name, course.rules().assistants)
            _take_over(made / name, course.release / name)
    write_rule(course.release, course.rules().assistants)
    enter_dropped(course)
    _finish(course)
    return chosen


def _finish(course: Course) -> None:
    """Enter the due dates, write the map, and remove the releases of notebooks that the course does not use."""
    with course.gradebook() as gradebook:
        enter_due_dates(gradebook, course.rules())
    if (course.source / "README.md").is_file():
        text = (course.source / "README.md").read_text(encoding="utf-8")
        write_whole(course.release / "README.md", fitted_map(text, course.rules()))
    for name in set(course.sources) - set(course.assignments):
        shutil.rmtree(course.release / name, ignore_errors=True)


def _generate(course: Course, names: Sequence[str]) -> None:
    for name in names:
        try:
            course.do("generate_assignment", name)
        except NbgraderError as error:
            if "Cannot add or remove cells" not in str(error):
                raise
            told = (
                f"{name}: students have handed it in, so nbgrader lets no cell with an id be added or taken out. Put "
                "the cells back as they were. To leave an exercise out of marks, list it in `dropped` in course.toml."
            )
            raise ReleaseError([told]) from None


def _take_over(made: Path, released: Path) -> None:
    """Replace the files in the folder `released` by those in `made`, each one at once, and remove the others."""
    names = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
    for name in sorted(names):
        (released / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).replace(released / name)
    for path in [path for path in released.rglob("*") if path.is_file()]:
        if path.relative_to(released) not in names:
            path.unlink()


def _keep_cells(course: Course, assignments: Sequence[str]) -> None:
    """Keep the cells of the notebooks as the gradebook has them now."""
    with course.gradebook() as gradebook:
        for name in assignments:
            with contextlib.suppress(MissingEntry):  # it was never released
                keep_release(course.journal.with_name(RELEASES), name, gradebook.find_notebook(name, name))


def required_hidden_folder() -> Path:
    """Return the folder of the hidden cases; raises `ReleaseError` in a student's installation, which has none."""
    found = hidden_folder()
    if found is None:
        raise ReleaseError(
            [
                "This is a student's installation: it has no hidden cases, so it cannot tell whether one leaked. "
                "Release from an instructor's checkout, or from the instructor image."
            ]
        )
    return found


def notebook_problems(notebook: Mapping[str, Any], assignment: str) -> list[str]:
    """Return a sentence for each mistake in this notebook; empty if there is none."""
    cells = [{**cell, "source": "".join(cell.get("source", ""))} for cell in notebook["cells"]]
    return [*_cell_problems(cells), *_group_problems(cells, assignment)]


def _cell_problems(cells: Sequence[Cell]) -> Iterator[str]:
    for number, cell in enumerate(cells, start=1):
        ours = _metadata(cell)
        name = f"cell {ours.get('grade_id', number)}"
        yield from marker_problems(cell, name, is_answer=bool(ours.get("solution")))
        if cell.get("outputs") or cell.get("execution_count"):
            yield f"{name}: holds an output; clear outputs before saving, they can hold an answer."


def _group_problems(cells: Sequence[Cell], assignment: str) -> Iterator[str]:
    ids = [str(_metadata(cell).get("grade_id", "")) for cell in cells]
    texts = {name for name, cell in zip(ids, cells, strict=True) if _is_locked_text(cell)}
    wanted = of_assignment(assignment)
    if wanted:
        yield from _setup_problems(cells, find(wanted[0]).setup)
    expected = {name for exercise in wanted for name in (exercise, exercise + CHECK)}
    for name, count in Counter(filter(None, ids)).items():
        if name not in expected | texts:
            yield f"cell {name}: no exercise of {assignment} has this id; there are {', '.join(wanted) or 'none'}."
        if count > 1:
            yield f"cell {name}: {count} cells have this id."
    for exercise_id in wanted:
        missing = [name for name in (exercise_id, exercise_id + CHECK) if name not in ids]
        for name in missing:
            yield f"cell {name}: missing; the exercise {exercise_id} needs an answer cell and a check cell."
        if not missing:
            answer, check = ids.index(exercise_id), ids.index(exercise_id + CHECK)
            if check < answer:
                yield f"cell {ids[check]}: stands before its answer cell."
            exercise = find(exercise_id, hidden=True)
            yield from sum_problems(exercise)
            yield from _answer_problems(cells[answer], exercise)
            yield from _check_problems(cells[check], exercise)


def _is_locked_text(cell: Cell) -> bool:
    """Tell whether a cell is a text that is graded in no way and that students must not change."""
    ours = _metadata(cell)
    return cell["cell_type"] == "markdown" and all(ours.get(flag) is value for flag, value in _LOCKED_TEXT.items())


def _answer_problems(cell: Cell, exercise: Exercise) -> Iterator[str]:
    name = f"cell {exercise.id}"
    yield from _flag_problems(cell, name, {**_ANSWER, "grade": bool(exercise.by_hand)})
    by_hand = _metadata(cell).get("points", 0)
    if by_hand != exercise.by_hand:
        yield f"{name}: is worth {by_hand} points of a person, its exercise {exercise.by_hand:g}."
    try:
        statements = tree_of(without_solutions(str(cell["source"]))).body
    except SyntaxError as error:
        yield f"{name}: without its solution it is not Python ({error.msg}, line {error.lineno})."
        return
    if not any(isinstance(s, ast.FunctionDef | ast.ClassDef) and s.name == exercise.entry_point for s in statements):
        yield f"{name}: does not define {exercise.entry_point}, the entry point of its exercise."


def _check_problems(cell: Cell, exercise: Exercise) -> Iterator[str]:
    name = f"cell {exercise.id}{CHECK}"
    yield from _flag_problems(cell, name, _CHECK_CELL)
    points = _metadata(cell).get("points")
    if points != exercise.points:
        yield f"{name}: is worth {points} points, its exercise {exercise.points:g}."
    source = check_source(exercise)
    if cell["source"] != source:
        yield f"{name}: must be exactly\n{source}"


def sum_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a sentence if the points of an exercise are not the sum of its checks."""
    checks = sum(check.points for check in exercise.checks)
    if not math.isclose(checks, exercise.points):
        yield f"exercise {exercise.id}: is worth {exercise.points:g} points, its checks {checks:g} together."


def check_source(exercise: Exercise) -> str:
    """Return the text of an exercise's check cell."""
    return f'from autograder.practice import check\ncheck("{exercise.id}", {exercise.entry_point})'


def _setup_problems(cells: Sequence[Cell], graded: str) -> Iterator[str]:
    """Compare the imports of the set-up cell with those that a graded answer gets."""
    cell = "\n".join(c["source"] for c in cells if "setup" in c.get("metadata", {}).get("tags", ()))
    written, there = ([each.line for each in imports(text)] for text in (cell, graded))
    for line in there:
        if line not in written:
            yield f"set-up cell: a graded answer may use {line!r}, which does not stand there."
    for line in written:
        if line not in there:
            yield f"set-up cell: a graded answer lacks {line!r}; add it to autograder/exercises/setup_cells.py."


def _flag_problems(cell: Cell, name: str, wanted: Mapping[str, bool]) -> Iterator[str]:
    found = _metadata(cell)
    if cell["cell_type"] != "code" or found.get("schema_version") != 3:
        yield f"{name}: must be a code cell with nbgrader's metadata of version 3."
    for flag, value in wanted.items():
        if found.get(flag, False) is not value:
            yield f"{name}: its flag {flag!r} must be {value}."


def _metadata(cell: Cell) -> Mapping[str, Any]:
    found: Mapping[str, Any] = cell.get("metadata", {}).get("nbgrader", {})
    return found


def exercises_without_notebook(assignments: Sequence[str]) -> list[str]:
    """Return a sentence for each exercise that is in no notebook."""
    covered = {exercise for assignment in assignments for exercise in of_assignment(assignment)}
    return [f"exercise {name}: no notebook has its number." for name in all_exercises() if name not in covered]
