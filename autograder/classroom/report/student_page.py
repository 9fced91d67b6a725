"""Write one student's page: marks by notebook, and each answer with its checks, the hidden ones too."""

import re
from collections.abc import Iterator, Mapping, Sequence

from autograder.classroom.report.copies import copies
from autograder.classroom.report.parts import bar, document, section, short, table
from autograder.classroom.report.summary import ClassSummary, Student
from autograder.classroom.term.lateness import LateRecord
from autograder.host.records import ExerciseRecord, SubmissionRecord
from autograder.host.report.exercise_html import exercise_html
from autograder.host.report.safe_text import Html, element, joined, one_line
from autograder.host.report.wording import marks, number, percent

FOLDER = "students"
_NAME_CHARACTERS = 60


def page_names(students: Sequence[Student]) -> Mapping[str, str]:
    """Return the path of each student's page, relative to the class report, by id; who handed in nothing has none.

    An id may hold letters that a file system or an address treats specially, and only case may tell two ids apart.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for i, student in enumerate(s for s in students if s.submissions):
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", student.name)[:_NAME_CHARACTERS]
        if stem != student.name or not stem:
            stem = f"{stem}-{i}"
        while stem.casefold() in taken:
            stem += "-"
        taken.add(stem.casefold())
        found[student.name] = f"{FOLDER}/{stem}.html"
    return found


def student_html(summary: ClassSummary, student: Student, *, title: str) -> str:
    """Return the page of one student, which an instructor reads: it shows hidden checks."""
    copied = [*copies(student)]
    sections = (
        element("p", element("a", title, href="../index.html")),
        element("h1", short(student.shown)),
        element("p", _total(student), class_="quiet"),
        *section("Notebooks", _marks(summary, student)),
        *(part for record in student.submissions for part in section(record.assignment, joined(*_answers(record)))),
        *(section("Copied functions", joined(*copied)) if copied else ()),
    )
    return document(f"{short(student.shown)} · {title}", sections)


def _total(student: Student) -> str:
    known_as = "" if student.shown == student.name else f"{short(student.name)} · "
    share = f" · {student.percent} %" if student.has_mark else ""
    return f"{known_as}{marks(student.points, student.max_points)}{share}"


def _marks(summary: ClassSummary, student: Student) -> Html:
    rows = []
    for notebook in summary.notebooks:
        record = student.handed_in(notebook.name)
        if record is None:
            rows.append((notebook.name, "not handed in", ""))
        else:
            share = f"{percent(record.points, record.max_points)} %"
            shown = joined(share, bar(record.points, record.max_points))
            link = element("a", notebook.name, href=f"#{_place(record.exercises[0].id)}") if record.exercises else ""
            rows.append((link or notebook.name, marks(record.points, record.max_points), shown))
            if isinstance(record, LateRecord):
                rows.append((record.late, f"−{number(round(record.deducted, 4))}", ""))
    return table(("notebook", "#points", "#share"), rows)


def _answers(record: SubmissionRecord) -> Iterator[Html]:
    for note in record.notes:
        yield element("p", one_line(note, limit=800))
    yield element(
        "div",
        *(
            element("div", exercise_html(e, show_hidden=True, notes=_notes(e)), id=_place(e.id))
            for e in record.exercises
        ),
        class_="pair",
    )


def _notes(exercise: ExerciseRecord) -> tuple[str, ...]:
    return () if exercise.counts else ("Graded and shown, and left out of the marks by course.toml.",)


def _place(exercise: str) -> str:
    """Return the name of an exercise's place on the page."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", exercise)
