"""Tests of checks whose points are shared among cases."""

import math

import pytest

from autograder.host.exercise import CheckFailedError
from autograder.host.point_shares import share_among
from autograder.host.records import ExerciseStatus
from autograder.host.session import AnswerFailedError


def odd(number: int) -> None:
    """Refuse even numbers; zero is no question at all."""
    if number == 0:
        raise AnswerFailedError(ExerciseStatus.STUDENT_ERROR, "division by zero", fatal=False)
    if number % 2 == 0:
        raise CheckFailedError(f"{number} is even.")


def test_every_right_case_earns_its_share() -> None:
    share_among([1, 3], odd)
    with pytest.raises(CheckFailedError, match=r"^2 is even\. \(3 of 4 numbers are right\.\)$") as caught:
        share_among([1, 2, 3, 5], odd, noun="numbers")
    assert caught.value.share == 0.75


def test_one_case_is_not_counted_in_words() -> None:
    with pytest.raises(CheckFailedError, match=r"^2 is even\.$"):
        share_among([2], odd)


def test_together_means_all_or_nothing() -> None:
    with pytest.raises(CheckFailedError) as caught:
        share_among([1, 2], odd, together=True)
    assert caught.value.share == 0


def test_an_answer_that_raises_ends_the_check_unless_it_is_said_where() -> None:
    with pytest.raises(AnswerFailedError, match="division"):
        share_among([0, 1], odd)
    with pytest.raises(CheckFailedError, match=r"^For 0: division by zero") as caught:
        share_among([0, 1], odd, where=lambda number: f"For {number}: ")
    assert caught.value.share == 0.5


def test_an_answer_that_raises_on_every_case_fails_with_its_own_error() -> None:
    with pytest.raises(AnswerFailedError, match="division by zero"):
        share_among([0, 0], odd, where=lambda number: f"For {number}: ")


@pytest.mark.parametrize(("share", "held"), [(-1.0, 0.0), (0.25, 0.25), (3.0, 1.0), (math.nan, 0.0), (math.inf, 1.0)])
def test_a_share_that_follows_from_an_answer_is_a_part_of_the_points(share: float, held: float) -> None:
    assert CheckFailedError("wrong", share=share).share == held
