"""Which of several hand-ins counts: the newest that is in time, or the newest if none is."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.notes import notes_for
from autograder.classroom.term.which_counts import TIMESTAMP, time_of
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import FULL, NAME, with_answer
from tests.autograder.classroom.nbgrader.test_exchange import collected, do_collect, inbound, put

__all__ = ["base", "course", "place"]  # fixtures
BEFORE, LATE = "2026-01-15 11:00:00.000000 UTC", "2026-01-16 11:00:00.000000 UTC"  # of the due time
TOLD = "A later hand-in, of 2026-01-16 11:00 UTC, is late and does not count"


@pytest.fixture
def exchange(course: Course) -> Course:
    inbound(course).mkdir(parents=True)
    return course


def test_a_late_second_hand_in_does_not_count_beside_one_in_time_and_the_report_says_so(exchange: Course) -> None:
    put(exchange, "eve", "first", time=BEFORE)
    put(exchange, "eve", "second", time=LATE)
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "first"
    notebook = exchange.submitted / "eve" / NAME / f"{NAME}.ipynb"
    (note,) = [note for note in notes_for(notebook, exchange.quarantine) if note.startswith("A later")]
    assert note == (f"{TOLD}; this one of 2026-01-15 11:00 UTC counts, as the newest in time.")


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


def test_what_was_noted_does_not_stay_where_the_same_notebook_counts_as_the_later_hand_in(exchange: Course) -> None:
    with exchange.gradebook() as gradebook:
        gradebook.add_student("eve")
    for time in (BEFORE, LATE):
        put(exchange, "eve", time=time)
    do_collect(exchange)
    extend(exchange, "eve", NAME, until="2099-01-01 12:00 UTC")
    do_collect(exchange)
    assert collected(exchange, "eve")[TIMESTAMP].startswith("2026-01-16")
    assert notes_for(exchange.submitted / "eve" / NAME / f"{NAME}.ipynb", exchange.quarantine) == ()


def test_who_has_only_late_ones_is_graded_by_the_newest(exchange: Course) -> None:
    put(exchange, "eve", "first", time=LATE)
    put(exchange, "eve", "second", time=LATE.replace("16 11", "16 12"))
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "second"


def test_that_a_late_hand_in_does_not_count_is_told_also_after_the_one_in_time_was_graded(exchange: Course) -> None:
    released = json.loads((exchange.release / NAME / f"{NAME}.ipynb").read_text())
    put(exchange, "eve", json.dumps(with_answer(released, FULL)), time=BEFORE)
    do_collect(exchange)
    assert TOLD not in graded(exchange).text
    put(exchange, "eve", "second", time=LATE)
    do_collect(exchange)
    do_collect(exchange)
    done = graded(exchange)
    assert (done.from_journal, done.text.count(TOLD)) == (3, 1)
    assert collected(exchange, "eve")[TIMESTAMP].startswith("2026-01-15")
    assert TOLD in (exchange.feedback / "eve" / NAME / f"{NAME}.html").read_text()


def test_a_hand_in_in_the_quarter_of_an_hour_that_costs_nothing_is_in_time(exchange: Course) -> None:
    put(exchange, "eve", "first", time=BEFORE)
    put(exchange, "eve", "second", time="2026-01-15 12:15:00.000000 UTC")
    put(exchange, "eve", "third", time="2026-01-15 12:15:01.000000 UTC")
    do_collect(exchange)
    assert collected(exchange, "eve")[f"{NAME}.ipynb"] == "second"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-01-15 11:00:00.250000 UTC", datetime(2026, 1, 15, 11, 0, 0, 250000)),
        ("2026-01-15 12:00:00 CET\n", datetime(2026, 1, 15, 11)),
        ("2026-07-15 13:00 Europe/Berlin", datetime(2026, 7, 15, 11)),
        ("2026-01-15T12:00:00+01:00", datetime(2026, 1, 15, 11)),
        ("2026-01-15 11:00", datetime(2026, 1, 15, 11)),
        ("noon", None),
        ("2026-13-15 11:00 UTC", None),
        ("2026-01-15 11:00 UTC" + " " * 5000, None),
    ],
)
def test_a_time_is_read_with_its_zone(tmp_path: Path, text: str, found: datetime | None) -> None:
    (tmp_path / TIMESTAMP).write_text(text)
    assert time_of(tmp_path) == found


def test_what_is_no_small_regular_file_holds_no_time(tmp_path: Path) -> None:
    for kind in ("fifo", "link", "folder"):
        (tmp_path / kind).mkdir()
    os.mkfifo(tmp_path / "fifo" / TIMESTAMP)
    (tmp_path / "link" / TIMESTAMP).symlink_to("/dev/zero")
    (tmp_path / "folder" / TIMESTAMP).mkdir()
    assert [time_of(tmp_path / kind) for kind in ("fifo", "link", "folder", "missing")] == [None] * 4


def test_one_hand_in_with_a_pipe_as_its_time_does_not_stop_collecting(exchange: Course) -> None:
    put(exchange, "ada", "first", time=BEFORE)
    do_collect(exchange)
    stamp = exchange.submitted / "ada" / NAME / TIMESTAMP
    stamp.unlink()
    os.mkfifo(stamp)
    put(exchange, "eve", "hers", time=BEFORE)
    do_collect(exchange)
    assert [collected(exchange, who)[f"{NAME}.ipynb"] for who in ("ada", "eve")] == ["first", "hers"]
