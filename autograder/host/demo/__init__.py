"""The demonstration: an instructor's whole grading cycle on the small class kept in tests/submissions."""

from autograder.host.demo.class_file import ClassFileError, Member, read_class, read_member
from autograder.host.demo.hand_in import hand_in
from autograder.host.demo.stated_marks import differences

__all__ = ["ClassFileError", "Member", "differences", "hand_in", "read_class", "read_member"]
