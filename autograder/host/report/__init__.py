"""The report of one exercise, as HTML and as text."""

from autograder.host.report.exercise_html import exercise_html
from autograder.host.report.exercise_text import exercise_text

__all__ = ["exercise_html", "exercise_text"]
