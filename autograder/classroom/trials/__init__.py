"""Trials: check single answers of students on this machine, before the deadline."""

from autograder.classroom.trials.serve_command import add_serve_trials

__all__ = ["add_serve_trials"]
