"""Report on a class to its instructor: an HTML page that opens offline, a text for the terminal, and data files."""

from autograder.classroom.report.data import checks_csv, class_json
from autograder.classroom.report.page import class_html
from autograder.classroom.report.summary import ClassSummary, Environment, summarise, this_environment
from autograder.classroom.report.text import class_text

__all__ = [
    "ClassSummary",
    "Environment",
    "checks_csv",
    "class_html",
    "class_json",
    "class_text",
    "summarise",
    "this_environment",
]
