"""Functions that a student's notebook calls: the visible checks on one answer, hints, and the progress so far."""

from autograder.practice.hints import hint
from autograder.practice.progress_summary import progress
from autograder.practice.visible_checks import check

__all__ = ["check", "hint", "progress"]
