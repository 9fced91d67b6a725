"""What the grader shows people: one exercise as HTML or text, a class as a page that opens offline."""

from autograder.host.report.class_data import checks_csv, class_json
from autograder.host.report.class_html import class_html
from autograder.host.report.class_text import class_text
from autograder.host.report.environment import Environment, this_environment
from autograder.host.report.exercise_html import exercise_html
from autograder.host.report.exercise_text import exercise_text
from autograder.host.report.summary import ClassSummary, summarise

__all__ = [
    "ClassSummary",
    "Environment",
    "checks_csv",
    "class_html",
    "class_json",
    "class_text",
    "exercise_html",
    "exercise_text",
    "summarise",
    "this_environment",
]
