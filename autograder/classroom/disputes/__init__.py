"""Disputed marks: grade an exercise again on the hand-in's own inputs, and show the case beside the reference."""

from autograder.classroom.disputes.explain_command import add_explain

__all__ = ["add_explain"]
