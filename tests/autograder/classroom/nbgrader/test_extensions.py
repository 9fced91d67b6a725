"""An extension holds from each of its sources, before or after the hand-in, and people see it."""

import csv
import json

import pytest

from autograder.classroom.cli import main
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.nbgrader.grade import Graded
from autograder.classroom.status import UsageError
from tests.autograder.classroom.nbgrader.changed_settings import with_settings
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import FULL, NAME, gradebook_of, hand_in, with_answer

__all__ = ["base", "course", "place"]  # fixtures
UNTIL = "Sunday, 18 January 2026, 12:00 (UTC), 3 days after the due date"
LATE = "2026-01-17 11:00:00 UTC"  # the second day after the due date


def penalty(course: Course, student: str) -> float | None:
    with gradebook_of(course) as gradebook:
        found: float | None = gradebook.find_submission(NAME, student).late_submission_penalty
        return found


def late(course: Course, student: str) -> Course:
    """Let a tenth be taken for each day, and the student be two days late; return the course with this rule."""
    (course.submitted / student / NAME / "timestamp.txt").write_text(LATE)
    return with_settings(course, "late = {days = 5, percent_per_day = 10}")


def of_csv(done: Graded, column: str) -> dict[str, str]:
    with done.csv.open() as file:
        return {row["student_id"]: row[column] for row in csv.DictReader(file)}


def test_who_can_still_hand_in_has_no_points_and_who_cannot_has_0(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("eve")
        gradebook.add_student("finn")
    extend(course, "eve", NAME, until="2999-01-18 12:00")
    assert of_csv(graded(course), "score") == {"ada": "6.0", "bob": "0.0", "eve": "", "finn": "0.0"}


def test_an_extension_given_before_the_hand_in_holds_and_is_shown(course: Course) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.add_student("eve")
    assert extend(course, "eve", NAME, days=3) == (
        f"eve has until {UNTIL} for {NAME}. The next grading takes it into the marks."
    )
    assert of_csv(graded(course), "extension_days") == {"ada": "", "bob": "", "eve": "3.0"}
    released = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text())
    hand_in(course, "eve", with_answer(released, FULL))
    course = late(course, "eve")

    done = graded(course)

    assert not penalty(course, "eve")
    assert f"eve · {NAME}: Has an extension until {UNTIL}." in done.text
    assert of_csv(done, "extension_days") == {"ada": "", "bob": "", "eve": "3.0"}
    page = (course.feedback / "eve" / NAME / f"{NAME}.html").read_text()
    assert f"You had an extension until {UNTIL}." in page


def test_nbgraders_own_extension_holds_at_once_and_is_not_overwritten(course: Course) -> None:
    course = late(course, "ada")
    graded(course)
    assert penalty(course, "ada") == pytest.approx(1.2)
    extend(course, "ada", NAME, days=1)
    graded(course)
    assert penalty(course, "ada") == pytest.approx(0.6)
    with gradebook_of(course) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=10)
    graded(course)
    assert not penalty(course, "ada")
    extend(course, "ada", NAME, days=0)
    graded(course)
    assert penalty(course, "ada") == pytest.approx(1.2)


def test_a_time_stays_what_it_is_if_the_due_date_moves_and_days_move_with_it(course: Course) -> None:
    extend(course, "ada", NAME, until="2026-01-18 12:00 Europe/Berlin")
    extend(course, "bob", NAME, days=3)
    with gradebook_of(course) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate="2026-01-16 12:00:00 UTC")
    text = graded(course).text
    assert "Has an extension until Sunday, 18 January 2026, 11:00 (UTC), 1.96 days after the due date." in text
    assert "Has an extension until Monday, 19 January 2026, 12:00 (UTC), 3 days after the due date." in text


def test_a_time_without_a_zone_is_in_the_courses(course: Course) -> None:
    told = extend(course, "ada", NAME, until="2026-01-18 12:00")
    assert "18 January 2026, 12:00 (UTC)" in told
    told = extend(with_settings(course, 'time_zone = "Europe/Berlin"'), "ada", NAME, until="2026-01-18 12:00")
    assert "18 January 2026, 12:00 (Europe/Berlin)" in told


@pytest.mark.parametrize(
    ("student", "given", "words"),
    [
        ("eva", {"days": 1}, "no student is called 'eva'"),
        ("ada", {"until": "tomorrow or so"}, "cannot be read as a time"),
        (
            "ada",
            {"until": "2026-01-15 11:59 UTC"},
            "is not after the due date, Thursday, 15 January 2026",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(course: Course, student: str, given: dict, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError, match=words):
        extend(course, student, NAME, **given)


def test_without_a_due_date_there_is_nothing_to_extend(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    with gradebook_of(course) as gradebook:
        gradebook.find_assignment(NAME).duedate = None
        gradebook.db.commit()
    assert main(["extend", "ada", NAME, "--days", "3"]) == 2
    assert f'set one below [due] in course.toml: "{NAME}" = ' in capsys.readouterr().err
