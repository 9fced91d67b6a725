"""Schedules: how a model is to be computed, written beside the model."""

from course_lib.schedule.finding import Match, Matches
from course_lib.schedule.history import History, Step
from course_lib.schedule.patterns import call_module
from course_lib.schedule.schedule import Schedule, create_schedule
from course_lib.schedule.verifying import verify

__all__ = ["History", "Match", "Matches", "Schedule", "Step", "call_module", "create_schedule", "verify"]
