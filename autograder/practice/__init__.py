"""What a student's notebook calls: the visible checks on one answer, hints, and how far one has come."""

from autograder.practice.checking import check
from autograder.practice.hinting import hint
from autograder.practice.progress import progress

__all__ = ["check", "hint", "progress"]
