"""The self-check passes on a clock that is right, and fails on one that is not."""

import json
from types import SimpleNamespace

import pytest

from course_lib.timing import selfcheck
from course_lib.timing.clocks import ClockName, Reading, WallClock
from course_lib.timing.device_checks import check_copy
from course_lib.timing.selfcheck import Check, SelfCheck, check_empty_call, check_sleep_linearity
from tests.course_lib.timing.fake_time import FakeTime


def slept(time: FakeTime, factor: float, late_s: float = 0.0):
    """Return a sleep on this clock that takes `factor` times as long as asked, and then wakes up late."""

    def sleep(asked_s: float) -> None:
        time.now_ns += round((factor * asked_s + late_s) * 1e9)

    return sleep


def test_sleeps_that_wake_up_late_are_still_linear():
    time = FakeTime()
    check = check_sleep_linearity(slept(time, 1.0, late_s=0.002), time.clock().now_us)

    assert check.passed
    assert check.measured == pytest.approx(1.0)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 1000.0])
def test_a_clock_that_runs_wrong_fails(factor):
    time = FakeTime()

    assert not check_sleep_linearity(slept(time, factor), time.clock().now_us).passed


def test_a_clock_that_takes_long_to_read_fails():
    time = FakeTime()

    def slow_ns() -> int:
        time.now_ns += 10_000
        return time.now_ns

    assert not check_empty_call(WallClock(slow_ns)).passed
    assert check_empty_call(FakeTime().clock()).passed


@pytest.mark.parametrize(("name", "cost_us", "passed"), [("cuda_event", 5.5, True), ("cuda_event", 9.0, False)])
def test_a_pair_of_events_may_take_longer_than_a_reading_of_the_clock(name, cost_us, passed):
    clock = SimpleNamespace(name=ClockName(name), read=lambda call, calls: Reading(cost_us, cost_us))

    check = check_empty_call(clock)
    assert (check.passed, check.told) == (passed, "at most 8 µs, 4% of the shortest sample")


def test_a_clock_that_does_not_see_the_work_fails_at_the_copy():
    ticks = iter(range(0, 10**9, 1_000))

    assert not check_copy(WallClock(lambda: next(ticks))).passed


def test_one_failed_check_fails_the_whole():
    checks = (Check("a", True, 1.0, "", ""), Check("b", False, 1.0, "", "expected 2"))
    whole = SelfCheck(checks, selfcheck(device="cpu").environment)

    assert not whole.passed
    assert "FAILED  b" in str(whole)


def test_this_machines_clock_is_checked_and_written_as_json():
    result = selfcheck(device="cpu")

    # Ratios and copies may be off while the machine is busy; that an empty call is short may not.
    assert result.checks[0].passed
    assert len(result.checks) == 5
    json.dumps(result.to_json())
