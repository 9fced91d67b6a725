"""A part of the exercises, another in each run."""

from autograder.exercises import all_exercises
from tests.drawn import some


def drawn(count: int) -> list[str]:
    """`count` exercises."""
    return some(all_exercises(), count, name="exercises")
