"""Tables and cells of the class report's page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograder.host.records import ExerciseRecord, ExerciseStatus
from autograder.host.report.markup import Html, element, joined
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import marks, percent, status_word


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table; a head that starts with ``#`` is a column of numbers."""
    kinds = ["num" if head.startswith("#") else "" for head in heads]
    top = (element("th", head.removeprefix("#"), class_=kind) for head, kind in zip(heads, kinds, strict=True))
    body = (
        element("tr", *(element("td", value, class_=kind) for value, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    return element("table", element("tr", *top), *body)


def bar(value: float, whole: float) -> Html:
    """A bar without words, for beside a number that says the same."""
    inside = element("i", style=f"width:{percent(value, whole)}%")
    return element("div", inside, class_="bar", aria_hidden="true")


def cell(record: ExerciseRecord | None) -> Html:
    """One student's result of one exercise, small."""
    if record is None:
        return element("span", "not handed in", class_="quiet")
    if record.status is ExerciseStatus.GRADER_ERROR:
        return element("span", "not graded", class_="tag decide")
    full = " ✓" if record.max_points > 0 and record.points >= record.max_points - 1e-9 else ""
    word = status_word(record)
    below = element("div", word, class_="quiet small") if word else ""
    return joined(f"{marks(record.points, record.max_points)}{full}", bar(record.points, record.max_points), below)


def name(student: str) -> str:
    """A student's name at a length that fits a table."""
    return one_line(student, limit=60)
