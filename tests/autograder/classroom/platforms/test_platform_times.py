"""The times of hand-ins, in the forms in which platforms write them."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from autograder.classroom.platforms.platform_times import read_time

BERLIN = ZoneInfo("Europe/Berlin")
HALF_PAST = datetime(2026, 1, 15, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Thursday, 15 January 2026, 12:30 PM",  # Moodle in English
        "Thursday, January 15, 2026, 12:30 PM",  # Moodle in American English
        "Thursday, 15 January 2026, 12:30",
        "Thursday, 15 January 2026, 12:30\u202fPM",  # with the narrow blank of newer versions
        "Jan 15, 2026 1230 PM",  # Brightspace, in the name of a folder
        "15 January 2026 1230",
        "2026-01-15-12-30-00",  # Blackboard
    ],
)
def test_a_time_without_a_zone_is_one_of_the_platforms_users(text: str) -> None:
    assert read_time(text, BERLIN) == HALF_PAST


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-15T11:30:00Z",  # Sakai
        "20260115113000000",  # earlier versions of Sakai
        "2026-01-15 11:30:00.000000000 Z",  # Gradescope
        "2026-01-15 03:30:00 -08:00",
        "2026-01-15 11:30:00 UTC",
    ],
)
def test_a_time_with_a_zone_keeps_it(text: str) -> None:
    assert read_time(text, BERLIN) == HALF_PAST


@pytest.mark.parametrize(
    ("text", "hour"), [("Jan 15, 2026 1250 AM", 0), ("Jan 15, 2026 1:50 AM", 1), ("Jan 15, 2026 1250 PM", 12)]
)
def test_twelve_comes_before_one(text: str, hour: int) -> None:
    assert read_time(text, UTC) == datetime(2026, 1, 15, hour, 50, tzinfo=UTC)


def test_summer_time_holds_for_the_day_of_the_hand_in() -> None:
    assert read_time("Monday, 15 June 2026, 11:30 AM", BERLIN) == datetime(2026, 6, 15, 9, 30, tzinfo=UTC)


def test_without_a_zone_it_is_the_machines_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        found = read_time("Thursday, 15 January 2026, 11:30 AM")
    time.tzset()
    assert found == datetime(2026, 1, 15, 11, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))


@pytest.mark.parametrize(
    "text",
    ["", "-", "Donnerstag, 15. Januar 2026, 11:30", "mar, 10 giu 2026, 14:14", "3", "31 February 2026, 11:30", "25:99"],
)
def test_what_is_no_time_in_english_or_numbers_is_none(text: str) -> None:
    assert read_time(text, UTC) is None
