"""Write the class report as one page, with a page for each student: no script, no network, every string escaped."""

from collections.abc import Mapping, Sequence

from autograder.classroom.report.attention import URGENCY_WORDS, grouped
from autograder.classroom.report.notebook_sections import each_notebook, overview
from autograder.classroom.report.notebooks import open_word, share
from autograder.classroom.report.parts import bar, document, histogram, listed, section, short, table
from autograder.classroom.report.similar_page import SIMILAR, similar_html
from autograder.classroom.report.student_page import page_names, student_html
from autograder.classroom.report.summary import ClassSummary, Environment, Student
from autograder.host.records import SubmissionRecord
from autograder.host.report.safe_text import Html, element, joined, one_line
from autograder.host.report.wording import marks, number

INDEX = "index.html"
_LEGEND = (
    "decide: there is no mark, or none that a person stands behind · "
    "look: the mark stands, its cause is unusual · know: for information"
)
_CELLS = "number: percent of the notebook's points · –: not handed in · *: one of its answers has no mark"


def class_pages(summary: ClassSummary, *, title: str, environment: Environment) -> dict[str, str]:
    """Return all pages of the report by their paths: the page of the class, and one for each student."""
    pages = page_names(summary.students)
    students = {pages[s.name]: student_html(summary, s, title=title) for s in summary.students if s.name in pages}
    similar = {SIMILAR: similar_html(summary, title=title)} if summary.alike else {}
    return {INDEX: class_html(summary, title=title, environment=environment), **similar, **students}


def class_html(summary: ClassSummary, *, title: str, environment: Environment) -> str:
    """Return the page of the class.

    It lists what needs a person's attention, notebooks, students, the distribution of marks, and the environment.
    """
    pages = page_names(summary.students)
    sections = (
        element("h1", title),
        _tiles(summary),
        *section("What needs a person", _attention(summary, pages)),
        *section("Notebooks", overview(summary)),
        *section("Students", _students(summary, pages)),
        *section("Students by percent of the points", histogram(summary.bins)),
        *section("Each notebook: exercises, checks, and what several students got wrong", each_notebook(summary)),
        *section("Where it was graded", _where(summary, environment)),
    )
    return document(title, sections)


def _tiles(summary: ClassSummary) -> Html:
    tiles = (
        (str(len(summary.students)), "students"),
        *([(str(summary.without_mark), "without a mark, left out of mean and median")] if summary.without_mark else []),
        (f"{summary.mean_percent:.0f} %", "mean"),
        (f"{summary.median_percent:.0f} %", "median"),
        (str(len(grouped(summary.attention))), "things to look at"),
        (", ".join(str(level) for level, _ in summary.sandboxes) or "–", "sandbox level"),
    )
    inside = (
        element("div", element("b", value), element("span", label, class_="quiet"), class_="tile")
        for value, label in tiles
    )
    return element("div", *inside, class_="tiles")


def _attention(summary: ClassSummary, pages: Mapping[str, str]) -> Html:
    if not summary.attention:
        return joined("Nothing: every submission was read, graded and ended by itself.")
    names = {student.name: student.shown for student in summary.students}
    rows = []
    for entry in grouped(summary.attention):
        word = URGENCY_WORDS[entry.urgency]
        tag = element("span", word, class_=f"tag {word}")
        who = listed(_link(name, names.get(name, name), pages) for name in entry.students)
        rows.append((tag, who, entry.where, one_line(entry.sentence, limit=800)))
    more = [element("p", element("a", "Similar answers", href=SIMILAR))] if summary.alike else []
    return joined(table(("", "student", "where", "what"), rows), element("p", _LEGEND, class_="quiet"), *more)


def _link(name: str, shown: str, pages: Mapping[str, str]) -> Html:
    return element("a", short(shown), href=pages[name]) if name in pages else joined(short(shown))


def _students(summary: ClassSummary, pages: Mapping[str, str]) -> Html:
    """Return the students by name, and folded the same by points: a page without a script cannot sort."""
    by_points = sorted(summary.students, key=lambda s: (not s.has_mark, -s.percent, s.name))
    folded = element("details", element("summary", "the same by points"), _matrix(summary, by_points, pages))
    return joined(_matrix(summary, summary.students, pages), folded, element("p", _CELLS, class_="quiet"))


def _matrix(summary: ClassSummary, students: Sequence[Student], pages: Mapping[str, str]) -> Html:
    columns = [_column(notebook.name) for notebook in summary.notebooks]
    rows = [
        (
            _who(s, pages),
            marks(s.points, s.max_points),
            joined(f"{s.percent} %", bar(s.points, s.max_points)) if s.has_mark else "–",
            *(_cell(s.handed_in(notebook.name)) for notebook in summary.notebooks),
        )
        for s in students
    ]
    return element("div", table(("student", "#points", "#share", *columns), rows, class_="matrix"), class_="wide")


def _column(notebook: str) -> Html:
    """Return a narrow heading: the notebook's number, with the whole name for those who point at it."""
    brief, _, _ = notebook.partition("_")
    return element("abbr", brief or notebook, title=notebook)


def _who(student: Student, pages: Mapping[str, str]) -> Html:
    link = _link(student.name, student.shown, pages)
    return (
        link
        if student.shown == student.name
        else joined(link, element("div", short(student.name), class_="quiet small"))
    )


def _cell(record: SubmissionRecord | None) -> Html:
    """Return one student's result of one notebook, small."""
    if record is None:
        return element("span", "–", class_="quiet")
    if word := open_word(record):
        return element("span", word, class_="tag decide")
    bonus = sum(e.bonus.points for e in record.exercises if e.bonus is not None)
    more = [element("div", f"bonus {number(bonus)}", class_="small")] if bonus else []
    badges = [f"{e.badge.badge} badge" for e in record.exercises if e.badge and e.badge.badge]
    more += [element("div", badge, class_="small") for badge in badges]
    return joined(share(record), bar(record.points, record.max_points), *more)


def _where(summary: ClassSummary, environment: Environment) -> Html:
    levels = [("sandbox level", "; ".join((str(level), *notes))) for level, notes in summary.sandboxes]
    speed = [("points for speed", summary.speed)] if summary.speed else []
    facts = (*levels, *speed, *environment.facts)
    return element("dl", *(joined(element("dt", k), element("dd", v)) for k, v in facts))
