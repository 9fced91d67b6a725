"""Schedules, which change how a model is computed and are written beside the model."""

from course_lib.schedule.matches import Matches, PatternMatch, call_module
from course_lib.schedule.schedule import History, Schedule, Step, create_schedule
from course_lib.schedule.search import Candidate, Choice, SearchResult, search
from course_lib.schedule.verification import verify

__all__ = [
    "Candidate",
    "Choice",
    "History",
    "Matches",
    "PatternMatch",
    "Schedule",
    "SearchResult",
    "Step",
    "call_module",
    "create_schedule",
    "search",
    "verify",
]
