"""Write marks into copies of the grading worksheets that lie next to Moodle's archives.

A worksheet that was read by `nbgrader zip_collect` comes back in `work/moodle/ASSIGNMENT/`, under its own name, with
the grades of everybody who has a mark. Moodle imports it with "Upload grading worksheet".
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.export import points_of
from autograder.classroom.platforms.moodle_worksheet import Worksheet, WorksheetError, read_worksheet
from autograder.classroom.platforms.roster_lookup import UnmatchedError, roster_of
from autograder.classroom.platforms.upload_owners import student_of
from autograder.classroom.report.data import DECIMALS
from autograder.classroom.whole_files import write_whole


def write_worksheets(course: Course, assignments: Iterable[str]) -> Iterator[str]:
    """Write the worksheets of these assignments, and yield a line about each."""
    downloaded = Path(course.api.coursedir.root, course.api.config.ZipCollectApp.downloaded_directory)
    for name in assignments:
        for path in sorted((downloaded / name / "archive").glob("*.csv")):
            try:
                worksheet = read_worksheet(path)
                with course.gradebook() as gradebook:
                    grades = grades_of(gradebook, name, worksheet)
            except WorksheetError as error:
                yield f"moodle     no grades were written: {error}"
                continue
            to = course.journal.parent / "moodle" / name / path.name
            write_whole(to, worksheet.filled(grades))
            yield f"moodle     {to}, {len(grades)} of {len(worksheet.participants)} participants have a mark"


def grades_of(gradebook: Gradebook, assignment: str, worksheet: Worksheet) -> dict[str, str]:
    """Return the grade of each participant who has a mark, by number, in proportion to the maximum in Moodle.

    Raises `WorksheetError` if Moodle does not grade the assignment by points.
    """
    try:
        own = gradebook.find_assignment(assignment).max_score
    except MissingEntry:  # it was not handed in by anybody
        return {}
    most, roster, grades = worksheet.maximum(), roster_of(gradebook.students), {}
    for person in worksheet.participants.values():
        with suppress(UnmatchedError):  # somebody who is not in the course
            points = points_of(gradebook, assignment, student_of(person, roster))
            if points is not None and own:
                grades[person.number] = f"{round(points * most / own, DECIMALS):g}"
    return grades
