"""Leave exercises out of the marks: those that `dropped` in course.toml names.

    dropped = ["00_doctor"]

They are graded and shown as before. In the gradebook they are worth 0 points, so marks, maximum, tables, feedback and
Formgrader say the same. What a person entered for one is kept in a file, and comes back when it counts again.
"""

import json
from collections.abc import Collection, Iterator

from nbformat.notebooknode import from_dict
from nbgrader.api import GradeCell
from nbgrader.utils import compute_checksum

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.releases import FILE as RELEASES
from autograder.classroom.nbgrader.releases import released_cells, releases_of
from autograder.classroom.report.attention import Attention, Urgency
from autograder.classroom.whole_files import write_whole
from autograder.course_settings import SettingsError, nearest
from autograder.exercises import all_exercises
from autograder.exercises.answer_cells import CHECK

FILE = "dropped.json"
Entered = dict[str, dict[str, list[float | None]]]
"""What a person entered, by cell and student: the score, and the extra credit."""


def dropped_exercises(course: Course) -> frozenset[str]:
    """Return the exercises that course.toml leaves out of the marks; raises `SettingsError` for an unknown one."""
    names = course.rules().dropped
    for name in names:
        if name not in all_exercises():
            hint = nearest(name, all_exercises())
            raise SettingsError(f"{course.settings}: dropped names {name!r}, and no exercise is called so{hint}")
    return frozenset(names)


def enter_dropped(course: Course) -> frozenset[str]:
    """Let the dropped exercises be worth nothing in the gradebook, and all others what they were released with."""
    dropped = dropped_exercises(course)
    path = course.journal.with_name(FILE)
    entered: Entered = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not dropped and not entered:
        return dropped
    with course.gradebook() as gradebook:
        for cell in gradebook.db.query(GradeCell).all():
            if cell.name.removesuffix(CHECK) in dropped:
                _drop(cell, entered.setdefault(cell.name, {}))
            elif cell.name in entered:
                _count(course, cell, entered[cell.name])
        # first, so that nothing is lost if this is killed before or after the commit
        write_whole(path, json.dumps(entered, indent=1))
        gradebook.db.commit()
    kept = {name: of_cell for name, of_cell in entered.items() if name.removesuffix(CHECK) in dropped}
    write_whole(path, json.dumps(kept, indent=1))
    return dropped


def _drop(cell: GradeCell, entered: dict[str, list[float | None]]) -> None:
    _set_points(cell, 0.0)
    for grade in cell.grades:
        if grade.manual_score is not None or grade.extra_credit is not None:
            entered[grade.student.id] = [grade.manual_score, grade.extra_credit]
            grade.manual_score = grade.extra_credit = None
        grade.auto_score = None if grade.auto_score is None else 0.0


def _count(course: Course, cell: GradeCell, entered: dict[str, list[float | None]]) -> None:
    """Give a cell its released points back, and what a person had entered."""
    for release in releases_of(course.journal.with_name(RELEASES), cell.notebook.assignment.name):
        if most := release[cell.name].metadata["points"] if cell.name in release else 0:
            _set_points(cell, most)
            break
    for grade in cell.grades:
        if grade.manual_score is None and grade.student.id in entered:
            grade.manual_score, grade.extra_credit = entered[grade.student.id]


def _set_points(cell: GradeCell, points: float) -> None:
    """Let a cell be worth so many points, as a release would: its checksum, which nbgrader compares, counts them."""
    cell.max_score = points
    released = released_cells(cell.notebook)[cell.name]
    metadata = {"nbgrader": dict(released.metadata)}
    node = from_dict({"cell_type": released.cell_type, "source": released.source, "metadata": metadata})
    for source in cell.notebook.source_cells:
        if source.name == cell.name:
            source.checksum = compute_checksum(node)


def told(dropped: Collection[str]) -> Iterator[Attention]:
    """Yield an entry for each exercise that does not count."""
    for name in sorted(dropped):
        yield Attention(Urgency.COULD, "all", name, "It is left out of the marks, by course.toml: graded, not counted.")
