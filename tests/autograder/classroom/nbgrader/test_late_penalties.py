"""What a late hand-in costs is the same in every table and page, with its reason, and touches no exercise."""

import csv

import pytest

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.export import points_of
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.nbgrader.grade import Graded
from autograder.classroom.term.lateness import DAY_S, GRACE_S, latenesses
from autograder.course_settings import Late, Settings
from autograder.exercises import find, of_assignment
from autograder.host.report.wording import number
from tests.autograder.classroom.nbgrader.changed_settings import with_settings
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import ANSWER, NAME, gradebook_of

__all__ = ["base", "course", "place"]  # fixtures
FULL_POINTS = find(ANSWER).points
MOST = sum(find(name).points for name in of_assignment(NAME))
RULES = Settings(late=Late(2, 10.0))


@pytest.mark.parametrize(
    ("seconds", "percent"),
    [(0, 0), (GRACE_S, 0), (GRACE_S + 1, 10), (DAY_S + GRACE_S, 10), (DAY_S + GRACE_S + 1, 20), (2 * DAY_S + 901, 100)],
)
def test_each_day_begun_costs_its_share_after_the_grace_and_all_after_the_last(seconds: float, percent: float) -> None:
    late = latenesses([("a", seconds)], RULES).get("a")
    assert (late.percent if late else 0) == percent


def test_without_a_rule_nothing_is_taken() -> None:
    assert latenesses([("a", 10.0 * DAY_S)], Settings()) == {}


def test_late_days_are_used_in_the_order_of_due_dates_and_not_for_what_comes_too_late() -> None:
    given = [("a", 1.5 * DAY_S), ("b", 9.0 * DAY_S), ("c", 1.5 * DAY_S), ("d", 1.5 * DAY_S)]
    found = latenesses(given, Settings(late=Late(2, 10.0), late_days=3))
    assert {name: (late.days, late.free, late.percent) for name, late in found.items()} == {
        "a": (2, 2, 0.0),
        "b": (9, 0, 100.0),
        "c": (2, 1, 10.0),
        "d": (2, 0, 20.0),
    }
    assert found["a"].sentence == (
        "Handed in late, on day 2 after the due time; 2 late days are used, so nothing is deducted."
    )
    assert found["b"].sentence == (
        "Handed in late, on day 9 after the due time; a hand-in that comes after day 2 earns nothing."
    )
    assert found["c"].sentence == (
        "Handed in late, on day 2 after the due time; 1 late day is used, and 10 % is deducted."
    )


def test_a_quarter_of_an_hour_and_a_minute_is_called_day_1_and_not_a_day() -> None:
    def sentence(days: int) -> str:
        return latenesses([("a", 16 * 60.0)], Settings(late=Late(days, 10.0)))["a"].sentence

    assert sentence(2) == "Handed in late, on day 1 after the due time; 10 % is deducted."
    assert sentence(0) == "Handed in late, on day 1 after the due time; a hand-in that comes late earns nothing."


def everywhere(course: Course, done: Graded) -> set[float]:
    """Return ada's points as each table and page has them."""
    with done.csv.open() as file:
        (row,) = [row for row in csv.DictReader(file) if (row["student_id"], row["assignment"]) == ("ada", NAME)]
    with gradebook_of(course) as gradebook:
        entered = points_of(gradebook, NAME, "ada")
    assert entered is not None
    (record,) = [record for record in done.records if record.student == "ada"]
    page = (course.feedback / "ada" / NAME / f"{NAME}.html").read_text()
    assert f"{number(entered)} of {number(MOST)} points" in page
    assert f"{number(entered)} / {number(MOST)}" in (done.page.parent / "students" / "ada.html").read_text()
    return {float(row["score"]), entered, record.points}


def test_the_same_points_and_the_same_reason_stand_everywhere(course: Course) -> None:
    (course.submitted / "ada" / NAME / "timestamp.txt").write_text("2026-01-17 11:00:00 UTC")  # on the second day
    course = with_settings(course, "late = {days = 2, percent_per_day = 10}\nlate_days = 1")

    done = graded(course)

    assert everywhere(course, done) == {FULL_POINTS * 0.9}
    sentence = "Handed in late, on day 2 after the due time; 1 late day is used, and 10 % is deducted."
    assert f"ada · {NAME}: {sentence} This costs {number(FULL_POINTS * 0.1)} points." in done.text
    for page in (course.feedback / "ada" / NAME / f"{NAME}.html", done.page.parent / "students" / "ada.html"):
        assert sentence in page.read_text()
    own = f"{number(FULL_POINTS * 0.1)} points were deducted for lateness; {sentence.removesuffix('.')}"
    assert own in (course.feedback / "ada" / "marks.html").read_text()
    assert f',2,1,"{sentence}"' in done.csv.read_text()
    (record,) = [record for record in done.records if record.student == "ada"]
    assert sum(exercise.points for exercise in record.exercises) == FULL_POINTS
    assert '"deducted"' not in course.journal.read_text()

    extend(course, "ada", NAME, days=1)
    assert everywhere(course, graded(course)) == {FULL_POINTS}
    extend(course, "ada", NAME, days=0)
    assert everywhere(course, graded(with_settings(course, ""))) == {FULL_POINTS}
    assert everywhere(course, graded(with_settings(course, "late = {days = 1, percent_per_day = 10}"))) == {0.0}


def test_a_late_day_that_an_earlier_notebook_uses_up_is_missing_for_a_later_one(course: Course) -> None:
    (course.submitted / "ada" / NAME / "timestamp.txt").write_text("2026-01-16 11:00:00 UTC")
    course = with_settings(course, "late = {days = 2, percent_per_day = 10}\nlate_days = 1")
    assert everywhere(course, graded(course)) == {FULL_POINTS}
    with gradebook_of(course) as gradebook:
        gradebook.add_assignment("00_start_here", duedate="2026-01-10 12:00:00 UTC")
        gradebook.add_submission("00_start_here", "ada", timestamp="2026-01-11 11:00:00 UTC")
    done = graded(course)
    assert everywhere(course, done) == {FULL_POINTS * 0.9}
    assert (
        "Handed in late, on day 1 after the due time; 10 % is deducted."
        in (course.feedback / "ada" / NAME / f"{NAME}.html").read_text()
    )
