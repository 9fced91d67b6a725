"""The GPU check's section on the judge's clock: what it calls a failure, and that its table says what was found."""

from typing import Any

import pytest

from benchmarks.gpu.sections import clock


def notes(**changes: Any) -> dict[str, Any]:
    """What a good run leaves."""
    right = {"ratio": 1.49, "pairs": 12, "verdicts": {"1.2": "pass", "2.0": "fail"}}
    one = {"calls": 100, "host_us": 5_000.0, "inside_us": 4_950.0, "kernels_us": 4_900.0, "empty_us": 90.0}
    good = {"dry": False, "agreement": [one], "attacks": {"side stream": "wrong output"}, "idle": [right]}
    return good | {"with a neighbour": [right]} | changes


LYING = {"calls": 100, "host_us": 5_000.0, "inside_us": 5_500.0, "kernels_us": 4_950.0, "empty_us": 90.0}
OFF = {"calls": 100, "host_us": 5_000.0, "inside_us": 4_000.0, "kernels_us": 4_900.0, "empty_us": 90.0}
WRONG = {"ratio": 1.1, "pairs": 9, "verdicts": {"1.2": "fail", "2.0": "fail"}}
UNDECIDED = {"ratio": 1.2, "pairs": 9, "verdicts": {"1.2": "environment", "2.0": "inconclusive"}}


def test_a_good_run_fails_nothing_and_is_in_the_table():
    table = clock.as_markdown(notes())

    assert clock.failures(notes()) == []
    for words in ("5,000 µs", "4,900 µs", "1.490", "with a neighbour", "side stream: wrong output"):
        assert words in table


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agreement": [OFF]}, "at 100 calls the host's clock is +25.0% off inside"),
        ({"agreement": [LYING]}, "at 100 calls the host's clock is -9.1% off inside"),  # events that lie by 10 %
        ({"idle": [WRONG]}, "idle, asked for 1.2: fail at a true ratio of 1.5"),
        ({"with a neighbour": [WRONG]}, "with a neighbour, asked for 1.2"),
        ({"attacks": {"late writes": "pass"}}, "the attack 'late writes' passes"),
    ],
)
def test_what_is_off_is_a_failure(change, words):
    assert any(words in failure for failure in clock.failures(notes(**change)))


def test_a_window_that_is_too_short_and_a_ratio_that_is_undecided_fail_nothing():
    short = OFF | {"host_us": 1_900.0}

    assert clock.failures(notes(agreement=[short], idle=[UNDECIDED])) == []
    assert clock.failures(notes(dry=True, agreement=[OFF], idle=[WRONG])) == []
