"""Demonstrate an instructor's whole grading cycle on the small class in tests/submissions."""

from demo.class_file import ClassFileError, Member, read_class, read_member
from demo.hand_in import hand_in
from demo.outcome import differences

__all__ = ["ClassFileError", "Member", "differences", "hand_in", "read_class", "read_member"]
