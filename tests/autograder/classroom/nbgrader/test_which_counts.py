"""Which of several hand-ins counts: the newest before the student's own due date, or the best, by course.toml."""

import csv
import json
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.notes import notes_for
from autograder.exercises import find
from tests.autograder.classroom.nbgrader.changed_settings import with_settings
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import ANSWER, FULL, NAME, with_answer
from tests.autograder.classroom.nbgrader.test_exchange import collected, do_collect, inbound, put

__all__ = ["base", "course", "place"]  # fixtures
BEFORE, LATE = "2026-01-15 11:00:00.000000 UTC", "2026-01-16 11:00:00.000000 UTC"  # of the due time
POINTS = find(ANSWER).points


@pytest.fixture
def exchange(course: Course) -> Course:
    inbound(course).mkdir(parents=True)
    return course


def put_answer(course: Course, text: str, time: str) -> Path:
    released = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text())
    return put(course, "eve", json.dumps(with_answer(released, text)), time=time)


def score(course: Course) -> float:
    with graded(course).csv.open() as file:
        return next(float(row["score"]) for row in csv.DictReader(file) if row["student_id"] == "eve")


def test_a_late_second_hand_in_does_not_count_beside_one_in_time_and_the_report_says_so(exchange: Course) -> None:
    put(exchange, "eve", "first", time=BEFORE)
    put(exchange, "eve", "second", time=LATE)
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "first"
    notebook = exchange.submitted / "eve" / NAME / f"{NAME}.ipynb"
    (note,) = [note for note in notes_for(notebook, exchange.quarantine) if note.startswith("A later")]
    assert note == (
        "A later hand-in, of 2026-01-16 11:00 UTC, is late; this one of 2026-01-15 11:00 UTC counts, "
        "as the newest before the due time."
    )


def test_with_an_extension_the_second_hand_in_counts_and_is_not_called_written_late(exchange: Course) -> None:
    with exchange.gradebook() as gradebook:
        gradebook.add_student("eve")
    put(exchange, "eve", "first", time=BEFORE)
    do_collect(exchange)
    put(exchange, "eve", "second", time=LATE)  # the exchange's own clock is months later, for both
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "first"
    extend(exchange, "eve", NAME, until="2099-01-01 12:00 UTC")
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "second"
    assert notes_for(exchange.submitted / "eve" / NAME / f"{NAME}.ipynb", exchange.quarantine) == ()


def test_who_has_only_late_ones_is_graded_by_the_newest(exchange: Course) -> None:
    put(exchange, "eve", "first", time=LATE)
    put(exchange, "eve", "second", time=LATE.replace("16 11", "16 12"))
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "second"


def test_the_best_counts_after_the_deduction_and_all_are_named(exchange: Course) -> None:
    rules = 'counts = "best"\nlate = {days = 2, percent_per_day = 10}'
    course = with_settings(exchange, rules)
    put_answer(course, FULL, LATE)
    put_answer(course, "", BEFORE)
    do_collect(course)
    assert score(course) == pytest.approx(POINTS * 0.9)
    put_answer(course, FULL, "2026-01-15 10:00:00.000000 UTC")
    do_collect(course)
    done = graded(course)
    assert "3 hand-ins, and the best counts, of 2026-01-15 10:00 UTC" in done.text
    assert score(course) == POINTS
    do_collect(course)
    assert score(course) == POINTS
