"""A class that a measurement grades sets up gradebooks as the grader's tests do."""

from tests.autograder.conftest import quick_gradebooks

__all__ = ["quick_gradebooks"]
