"""What course.toml says of notebooks and due dates holds in all that students and instructors see."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.nbgrader.release import release
from autograder.classroom.status import UsageError
from autograder.classroom.term.course_texts import LAST, fitted_map
from autograder.classroom.term.due_dates import enter_due_dates
from autograder.course_settings import Settings, SettingsError, course_settings
from autograder.practice import progress
from scripts import student_tree
from tests.architecture.source_tree import ROOT
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import NAME, gradebook_of

__all__ = ["base", "course", "place"]  # fixtures
TEXT = f"""
time_zone = "Europe/Berlin"
notebooks = ["00_start_here", "{NAME}", "07_dynamo"]
[due]
"{NAME}" = 2026-01-20T23:59:00
"""


@pytest.fixture
def setting(course: Course, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Course]:
    """Return a function that opens the course with another course.toml."""

    def write(text: str) -> Course:
        path = course.journal.with_name("course.toml")
        path.write_text(text)
        monkeypatch.setenv("COURSE_SETTINGS", str(path))
        return open_course()

    return write


def cells_of(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def due_in_gradebook(course: Course) -> datetime | None:
    with gradebook_of(course) as gradebook:
        due: datetime | None = gradebook.find_assignment(NAME).duedate
        return due


def test_a_released_notebook_says_when_it_is_due_and_leads_to_the_courses_next_one(setting) -> None:
    course = setting(TEXT)
    release(course, [NAME])
    cells = cells_of(course.release / NAME / f"{NAME}.ipynb")
    assert cells[0].endswith("\n\n**Due:** Tuesday, 20 January 2026, 23:59 (Europe/Berlin).")
    assert cells[-1].endswith("\n\n**Next:** [07 · Dynamo](../07_dynamo/07_dynamo.ipynb).")
    assert due_in_gradebook(course) == datetime(2026, 1, 20, 22, 59)  # nbgrader's are in UTC

    course = setting(f'notebooks = ["{NAME}"]')
    release(course, [NAME])
    cells = cells_of(course.release / NAME / f"{NAME}.ipynb")
    assert "**Due:**" not in cells[0]
    assert cells[-1].endswith(f"\n\n{LAST}")


def test_a_released_notebook_says_what_lateness_costs(setting) -> None:
    course = setting(f"late = {{days = 2, percent_per_day = 10}}\nlate_days = 5\n{TEXT}")
    release(course, [NAME])
    assert cells_of(course.release / NAME / f"{NAME}.ipynb")[0].endswith(
        "23:59 (Europe/Berlin).\n\n**Late:** each day begun after this time costs 10 % of the points earned, and after "
        "2 days a hand-in earns nothing; 5 late days in the whole course cost nothing."
    )


def test_students_read_every_time_in_the_zone_of_the_course(setting) -> None:
    course = setting(TEXT.replace("2026-01-20", "2999-01-20"))
    extend(course, "ada", NAME, days=1)
    with gradebook_of(course) as gradebook:
        gradebook.add_student("cleo")
    graded(course)
    pages = course.feedback
    assert "open until Sunday, 20 January 2999, 23:59 (Europe/Berlin)" in (pages / "cleo" / "marks.html").read_text()
    until = "until Monday, 21 January 2999, 23:59 (Europe/Berlin)"
    assert f"you had time {until}" in (pages / "ada" / "marks.html").read_text()
    assert f"You had an extension {until}" in (pages / "ada" / NAME / f"{NAME}.html").read_text()


def test_the_map_lists_the_notebooks_of_the_course_and_when_they_are_due(setting) -> None:
    course = setting(TEXT)
    release(course, [NAME])
    lines = (course.release / "README.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| [")]
    assert [row[3:5] for row in rows] == ["00", "04", "07"]
    assert rows[0].endswith("| 30 |  |")
    assert rows[1].endswith("| 100 | Tuesday, 20 January 2026, 23:59 (Europe/Berlin) |")
    assert "## Tracks" not in lines
    assert "| block | elements that one Triton program reads or writes together |" in lines


def test_without_settings_the_map_is_as_it_is() -> None:
    text = (ROOT / "notebooks" / "README.md").read_text()
    assert fitted_map(text, Settings()) == text


def test_a_notebook_that_the_course_does_not_use_is_in_no_command_and_no_table(setting) -> None:
    course = setting('notebooks = ["00_start_here"]')
    assert course.assignments == ("00_start_here",)
    with pytest.raises(UsageError, match=f"{NAME} is not among `notebooks`"):
        release(course, [NAME])
    with pytest.raises(UsageError, match="is not among `notebooks`"):
        extend(course, "ada", NAME, days=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('notebooks = ["04_fx_captur"]', "notebooks names '04_fx_captur', and no notebook is called so; did you mean"),
        ("[due]\n04_fx_captur = 2026-01-20T23:59:00Z", "due names '04_fx_captur', and no notebook is called so"),
    ],
)
def test_an_unknown_notebook_is_refused(setting, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        _ = setting(text).assignments


def test_a_date_that_moved_is_in_the_gradebook_with_the_next_grading_and_extensions_count_from_it(setting) -> None:
    course = setting(TEXT)
    until = "Wednesday, 21 January 2026, 23:59 (Europe/Berlin), 1 day after the due date"
    assert extend(course, "ada", NAME, days=1).startswith(f"ada has until {until} for {NAME}.")
    setting(TEXT.replace("-20T", "-27T"))
    text = graded(open_course()).text
    assert due_in_gradebook(course) == datetime(2026, 1, 27, 22, 59)
    until = "Wednesday, 28 January 2026, 23:59 (Europe/Berlin), 1 day after the due date"
    assert f"Has an extension until {until}." in text


def test_a_date_goes_with_its_line_and_one_that_a_person_entered_stays(setting) -> None:
    course = setting(TEXT)
    with gradebook_of(course) as gradebook:
        enter_due_dates(gradebook, course.rules())
        enter_due_dates(gradebook, Settings())
    assert due_in_gradebook(course) is None
    with gradebook_of(course) as gradebook:
        enter_due_dates(gradebook, course.rules())
        gradebook.update_or_create_assignment(NAME, duedate="2026-03-01 12:00:00 UTC")
        enter_due_dates(gradebook, Settings())
        enter_due_dates(gradebook, Settings())
    assert due_in_gradebook(course) == datetime(2026, 3, 1, 12, 0)


def test_every_command_reads_the_same_file(setting, tmp_path: Path) -> None:
    course = setting(f'device = "cuda:3"\n{TEXT}')
    assert course_settings() == course.rules()
    student_tree.copy_code(tmp_path / "student")
    copied = (tmp_path / "student" / "course.toml").read_text()
    assert copied == f"notebooks = {['00_start_here', NAME, '07_dynamo']}\n"


def test_progress_shows_the_exercises_of_the_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "course.toml").write_text('notebooks = ["04_fx_capture"]')
    assert {exercise.id[:3] for exercise in progress().exercises} == {"04_"}
