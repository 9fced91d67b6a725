"""Say at the top of a feedback page what each exercise earned, and what failed first.

The grading step stores the sentences with each check cell's output, since only it has the record. The points come from
the gradebook when the page is made, because a person may have changed them.
"""

from collections.abc import Mapping

from nbformat import NotebookNode

from autograder.classroom.term.lateness import deducted_for_lateness
from autograder.exercises.answer_cells import CHECK
from autograder.host.records import CheckStatus, ExerciseRecord, ExerciseStatus
from autograder.host.report.safe_text import coded, element, one_line
from autograder.host.report.wording import (
    EXERCISE_WORDS,
    bonus_headline,
    hidden_categories,
    number,
    percent,
    speed_headline,
)
from autograder.host.value_cap import condition

KEY = "autograder"  # in the metadata of a check cell's output
_WRONG = (CheckStatus.FAILED, CheckStatus.ERROR)
_CHARACTERS = 400


def said_of(record: ExerciseRecord, title: str) -> dict[str, str]:
    """Return the sentences about one exercise: `title`, `first` failure, `limit` and `speed`; empty ones left out."""
    speed = "" if record.speed is None else speed_headline(record.speed)
    bonus = "" if record.bonus is None else f"Bonus: {bonus_headline(record.bonus)}."
    said = {
        "title": title,
        "first": _first_failure(record),
        "limit": condition(record),
        "speed": " ".join(filter(None, (speed, bonus))),
    }
    return {name: one_line(sentence, limit=_CHARACTERS) for name, sentence in said.items() if sentence}


def _first_failure(record: ExerciseRecord) -> str:
    if record.status is not ExerciseStatus.GRADED:
        return f"{EXERCISE_WORDS[record.status].capitalize()}. {record.message}".strip()
    for check in record.checks:
        if not check.hidden and check.status in _WRONG:
            return f"{check.name}: {check.message}" if check.message else check.name
    hidden = [group.category for group in hidden_categories(record.checks) if group.status in _WRONG]
    return f"Hidden checks that failed: {', '.join(hidden)}." if hidden else ""


def head(notebook: NotebookNode, grades: Mapping[str, object] | None) -> str:
    """Return the head of a page as HTML: the marks, and a line for each exercise that leads to its cell.

    `grades` is what nbgrader knows of the hand-in: `notebook`, `score`, `max_score` and `late_penalty`, in points.
    """
    rows = [_row(cell) for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    heads = (element("th", name, scope="col") for name in ("exercise", "points", "what to look at first"))
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="marks")
    grades = grades if isinstance(grades, Mapping) else {}
    score, most, late = (_float(grades.get(name)) for name in ("score", "max_score", "late_penalty"))
    penalty = f"; {deducted_for_lateness(late)}" if late > 0 else ""
    total = f"{number(round(score, 2))} of {number(round(most, 2))} points, {percent(score, most)} %{penalty}"
    return element("header", element("h1", str(grades.get("notebook", ""))), element("p", total), table, id="marks")


def _row(cell: NotebookNode) -> str:
    graded = cell.metadata["nbgrader"]
    name, most = str(graded["grade_id"]), _float(graded.get("points"))
    score = _float(graded.get("score"))
    said = _said(cell)
    by_person = "" if name.endswith(CHECK) else element("div", "read by a person", class_="quiet")
    link = element("a", said.get("title") or name.removesuffix(CHECK), href=f"#{name}")
    points = (f"{number(round(score, 2))} / {number(round(most, 2))}", _bar(score, most))
    sentences = [element("div", coded(said[part])) for part in ("first", "limit", "speed") if part in said]
    if not sentences and score >= most > 0:
        sentences = [element("div", "✓ all points")]
    return element("tr", element("td", link, by_person), element("td", *points), element("td", *sentences))


def _said(cell: NotebookNode) -> Mapping[str, str]:
    """Return what the grading step stored with the output of a check cell."""
    outputs = cell.get("outputs", [])
    said = outputs[0].get("metadata", {}).get(KEY, {}) if outputs else {}
    return {name: text for name, text in said.items() if isinstance(text, str)}


def _bar(value: float, whole: float) -> str:
    inside = element("i", style=f"width:{percent(value, whole)}%")
    return element("div", inside, class_="share", aria_hidden="true")


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
