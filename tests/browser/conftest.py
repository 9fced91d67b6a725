"""Tests in the browser set up gradebooks as the grader's do."""

from tests.autograder.conftest import quick_gradebooks

__all__ = ["quick_gradebooks"]
