"""Streams of random numbers: one for each check, and some that checks of an exercise share."""

from autograder.host.draw import Draw


def numbers(draw: Draw) -> list[int]:
    """The beginning of a stream."""
    return [draw.integer(0, 10**9) for _ in range(3)]


def test_each_check_of_each_exercise_in_each_grading_draws_from_a_stream_of_its_own() -> None:
    streams = [(seed, exercise, check) for seed in (1, 2) for exercise in "ab" for check in "cd"]
    assert len({tuple(numbers(Draw(*stream))) for stream in streams}) == len(streams)
    assert numbers(Draw(1, "a", "c")) == numbers(Draw(1, "a", "c"))


def test_what_is_shared_is_the_same_in_all_checks_of_an_exercise_and_in_no_other() -> None:
    first, second = Draw(1, "a", "c"), Draw(1, "a", "d")
    first.integer(0, 9)
    assert numbers(first.shared("x")) == numbers(second.shared("x"))
    others = [second.shared("y"), Draw(1, "b", "d").shared("x"), Draw(2, "a", "d").shared("x"), Draw(1, "a", "x")]
    assert all(numbers(other) != numbers(second.shared("x")) for other in others)
