"""`open` and `close` print each step before it, stop where somebody may still hand in, and go on after a kill."""

from collections.abc import Callable
from datetime import datetime

import pytest

from autograder.classroom import week_commands
from autograder.classroom.cli import main
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.extensions import extend
from autograder.classroom.week_commands import late_until, still_open
from tests.autograder.classroom.nbgrader.small_course import base, course, place
from tests.autograder.classroom.nbgrader.test_course_toml import due_in_gradebook, setting
from tests.autograder.classroom.nbgrader.test_cycle import NAME, FakeSandbox

__all__ = ["base", "course", "place", "setting"]  # fixtures
RULES = f'[due]\n"{NAME}" = 2026-01-15T12:00:00Z\n'


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(week_commands, "open_chosen", lambda _: FakeSandbox())


def test_open_releases_it_says_when_it_is_due_and_can_be_repeated(
    setting: Callable[[str], Course], capsys: pytest.CaptureFixture[str]
) -> None:
    course = setting(RULES)
    outbound = course.journal.with_name("exchange") / "fusion-course" / "outbound" / NAME
    assert main(["open", NAME, "--dry-run"]) == 0
    assert not outbound.exists()
    dry = capsys.readouterr().out
    for _ in range(2):
        assert main(["open", NAME]) == 0
        said = capsys.readouterr().out
        assert [line for line in said.splitlines() if line in dry.splitlines()] == dry.splitlines()
        assert "**Due:** Thursday, 15 January 2026, 12:00 (UTC)." in (outbound / f"{NAME}.ipynb").read_text()
    assert "due        Thursday, 15 January 2026, 12:00 (UTC)" in said
    assert f"next       when it is due: autograder close {NAME}" in said


def test_who_may_still_hand_in_is_named_and_close_refuses_until_then(
    setting: Callable[[str], Course], capsys: pytest.CaptureFixture[str]
) -> None:
    course = setting(RULES)
    extend(course, "ada", NAME, until="2099-01-18 12:00 UTC")
    assert [*still_open(course, NAME, datetime.fromisoformat("2026-01-15T11:00:00"))] == [
        "everybody, until Thursday, 15 January 2026, 12:00 (UTC)",
        "ada, until Sunday, 18 January 2099, 12:00 (UTC)",
    ]
    assert [*still_open(course, NAME, datetime.fromisoformat("2099-02-01T00:00:00"))] == []
    before = course.journal.with_name("grades.csv").stat().st_mtime_ns
    assert main(["close", NAME]) == 3
    said = capsys.readouterr()
    assert said.out == f"Still allowed to hand in {NAME}: ada, until Sunday, 18 January 2099, 12:00 (UTC).\n"
    assert "With --yes it is closed now" in said.err
    assert main(["close", NAME, "--dry-run"]) == 0
    assert course.journal.with_name("grades.csv").stat().st_mtime_ns == before
    assert main(["close", NAME, "--yes"]) == 0
    assert course.journal.with_name("grades.csv").stat().st_mtime_ns > before


def test_close_goes_on_after_a_kill_and_grades_as_batch_does(
    setting: Callable[[str], Course], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setting(RULES)
    with monkeypatch.context() as patch:

        def killed(*_: object) -> int:
            raise KeyboardInterrupt

        patch.setattr(week_commands, "grade_and_tell", killed)
        assert main(["close", NAME]) == 4
    assert "the same command goes on" in capsys.readouterr().err
    assert main(["close", NAME]) == 0
    said = capsys.readouterr().out
    assert "The exchange has no folder" in said
    assert f"step 2 of 2  Grade, with marks, feedback and report: autograder batch --assignment {NAME}" in said
    assert f"give back  nbgrader release_feedback {NAME}" in said
    assert open_course().journal.is_file()


def test_close_says_until_when_a_late_hand_in_earns_points(
    setting: Callable[[str], Course], capsys: pytest.CaptureFixture[str]
) -> None:
    course = setting(f"late = {{days = 2, percent_per_day = 10}}\n{RULES}")
    sentence = (
        "Late hand-ins earn points until Saturday, 17 January 2026, 12:15 (UTC); "
        f"run `autograder close {NAME}` again then."
    )
    assert late_until(course, NAME, datetime.fromisoformat("2026-01-17T12:14:00")) == sentence
    assert late_until(course, NAME, datetime.fromisoformat("2026-01-17T12:16:00")) == ""
    assert late_until(setting(RULES), NAME, datetime.fromisoformat("2026-01-15T12:14:00")) == ""
    setting(f"late = {{days = 2, percent_per_day = 10}}\n{RULES.replace('2026', '2999')}")
    assert main(["close", NAME, "--dry-run"]) == 0
    assert "Late hand-ins earn points until Thursday, 17 January 2999, 12:15 (UTC)" in capsys.readouterr().out


def test_an_extension_of_somebody_outside_the_roster_is_waited_for(setting: Callable[[str], Course]) -> None:
    course = setting(RULES)
    (course.submitted / "zoe" / NAME).mkdir(parents=True)
    extend(course, "zoe", NAME, until="2099-01-18 12:00 UTC")
    assert [*still_open(course, NAME, datetime.fromisoformat("2026-02-01T00:00:00"))] == [
        "zoe, until Sunday, 18 January 2099, 12:00 (UTC)"
    ]


def test_a_dry_run_changes_no_due_date(setting: Callable[[str], Course], capsys: pytest.CaptureFixture[str]) -> None:
    course = setting(RULES)
    before = due_in_gradebook(course)
    setting(RULES.replace("2026", "2999"))
    assert main(["close", NAME, "--dry-run"]) == 0
    assert "everybody, until Tuesday, 15 January 2999, 12:00 (UTC)" in capsys.readouterr().out
    assert main(["open", NAME, "--dry-run"]) == 0
    assert "due        Tuesday, 15 January 2999, 12:00 (UTC)" in capsys.readouterr().out
    assert due_in_gradebook(course) == before


def test_open_says_a_date_that_only_the_gradebook_has(
    setting: Callable[[str], Course], capsys: pytest.CaptureFixture[str]
) -> None:
    setting('time_zone = "Europe/Berlin"')
    assert main(["open", NAME, "--dry-run"]) == 0
    assert "due        Thursday, 15 January 2026, 13:00 (Europe/Berlin)" in capsys.readouterr().out
