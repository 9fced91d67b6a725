"""Show each student their own marks over the term: as a page, and as a table at the top of released feedback.

`marks.html` in the student's feedback folder has a line for each notebook that somebody handed in, with a link to its
feedback. nbgrader's exchange gives back only pages of notebooks, so a page of feedback gets the same table when it is
released, with those notebooks whose feedback was released too. Both show what the gradebook has of this student alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from autograder.classroom.report.parts import bar, document, section, short, table
from autograder.host.report.safe_text import Html, element, joined
from autograder.host.report.wording import number, percent

PAGE = "marks.html"
PLACE = "<!-- all marks -->"
"""In a page of feedback: where its release puts the table."""


@dataclass(frozen=True)
class NotebookMarks:
    """One student's marks for one notebook."""

    notebook: str
    earned: float  # points after what was taken for lateness
    most: float  # without exercises that the course leaves out
    counts: bool  # False while there is no mark and time is left, or a hand-in waits for its mark
    notes: tuple[str, ...] = ()


def marks_html(name: str, rows: Sequence[NotebookMarks], linked: Collection[str]) -> str:
    """Return the page of a student; the notebooks in `linked` lead to their feedback."""
    shown = section("Notebooks", _table(rows, linked)) if rows else ()
    total = (element("h1", "Your marks"), element("p", f"{short(name)} · {_total(rows)}"))
    return document(f"Marks · {short(name)}", (*total, *shown))


def all_marks(rows: Sequence[NotebookMarks]) -> Html:
    """Return the table for the top of a page of feedback, folded."""
    return element("details", element("summary", f"All your marks so far: {_total(rows)}"), _table(rows, ()), id="term")


def _total(rows: Sequence[NotebookMarks]) -> str:
    earned, most = (sum(part) for part in ((r.earned for r in rows if r.counts), (r.most for r in rows if r.counts)))
    return f"{_points(earned, most)} points, {percent(earned, most)} %" if most else "no marks so far"


def _table(rows: Sequence[NotebookMarks], linked: Collection[str]) -> Html:
    return table(("notebook", "#points"), [(_name(row, row.notebook in linked), _share(row)) for row in rows])


def _name(row: NotebookMarks, is_linked: bool) -> Html:
    """Return the notebook with its remarks below it, so that a phone shows them too."""
    name = element("a", row.notebook, href=feedback_page(row.notebook)) if is_linked else row.notebook
    return joined(name, element("div", "; ".join(row.notes), class_="quiet small") if row.notes else "")


def _share(row: NotebookMarks) -> Html:
    if not row.counts:
        return joined(f"– of {number(round(row.most, 2))}")
    share = joined(f" · {percent(row.earned, row.most)} %", bar(row.earned, row.most)) if row.most else ""
    return joined(_points(row.earned, row.most), share)


def _points(earned: float, most: float) -> str:
    return f"{number(round(earned, 2))} of {number(round(most, 2))}"


def feedback_page(notebook: str) -> str:
    """Return the path of the feedback on a notebook, from the folder of `PAGE`."""
    return f"{notebook}/{notebook}.html"
