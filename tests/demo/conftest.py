"""The demonstration's tests set up gradebooks as the grader's do."""

from tests.autograder.conftest import quick_gradebooks, seeds_of_gradings

__all__ = ["quick_gradebooks", "seeds_of_gradings"]
