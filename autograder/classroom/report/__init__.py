"""Report on a class to its instructor: HTML pages that open offline, a text for the terminal, and data files."""

from autograder.classroom.report.data import checks_csv, class_json
from autograder.classroom.report.page import class_html, class_pages
from autograder.classroom.report.summary import ClassSummary, Environment, summarise, this_environment
from autograder.classroom.report.text import class_text

__all__ = [
    "ClassSummary",
    "Environment",
    "checks_csv",
    "class_html",
    "class_json",
    "class_pages",
    "class_text",
    "summarise",
    "this_environment",
]
