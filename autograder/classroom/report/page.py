"""Write the class report as one page: no script, no network, no other file, every string escaped."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.classroom.report.attention import URGENCY_WORDS
from autograder.classroom.report.copies import copies
from autograder.classroom.report.summary import Check, ClassSummary, Environment, Student
from autograder.host.records import WITHOUT_MARK, ExerciseRecord, ExerciseStatus
from autograder.host.report.exercise_html import exercise_html
from autograder.host.report.safe_text import Html, element, escaped, joined, one_line
from autograder.host.report.wording import discrimination_word, marks, number, percent, status_word

# the page may not load anything or run a script, even if a string was not escaped
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WIDTH, _HEIGHT, _BASE, _TOP = 640, 170, 140, 20  # of the histogram
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><style>
{style}</style></head>
<body><main>
{body}
</main></body></html>
"""
_LEGEND = (
    "decide: there is no mark, or none that a person stands behind · "
    "look: the mark stands, its cause is unusual · know: for information"
)
_DISCRIMINATION = (
    "discrimination: correlation of the check with all other points, from -1 to 1, for ten students and more; "
    "near 0 the check says nothing about a student, below 0 look at the check"
)


def class_html(summary: ClassSummary, *, title: str, environment: Environment) -> str:
    """Return the class report as one HTML document that opens offline.

    It lists what needs a person's attention, students, exercises, the distribution of marks, checks, every submission,
    and the environment.
    """
    copied = [*copies(summary.students)]
    sections = (
        element("h1", title),
        _tiles(summary),
        *_section("What needs a person", _attention(summary)),
        *_section("Students", _students(summary)),
        element(
            "div",
            element("div", *_section("Exercises", _exercises(summary))),
            element("div", *_section("Students by percent of the points", _histogram(summary.bins))),
            class_="pair",
        ),
        *_section("Checks", joined(*_checks(summary), element("p", _DISCRIMINATION, class_="quiet"))),
        *_section("What several students got wrong", _misconceptions(summary)),
        *_section("Every submission", joined(*(_details(i, s) for i, s in enumerate(summary.students)))),
        *(_section("Copied functions", joined(*copied)) if copied else ()),
        *_section("Where it was graded", _where(summary, environment)),
    )
    body = "\n".join(sections)
    return _PAGE.format(policy=_POLICY, title=escaped(title), style=_style(), body=body)


def _section(heading: str, inside: Html) -> tuple[Html, Html]:
    return element("h2", heading), element("div", inside, class_="card")


def _tiles(summary: ClassSummary) -> Html:
    tiles = (
        (str(len(summary.students)), "students"),
        *([(str(summary.without_mark), "without a mark, left out of mean and median")] if summary.without_mark else []),
        (f"{summary.mean_percent:.0f} %", "mean"),
        (f"{summary.median_percent:.0f} %", "median"),
        (str(len(summary.attention)), "things to look at"),
        (", ".join(str(level) for level, _ in summary.sandboxes) or "–", "sandbox level"),
    )
    inside = (
        element("div", element("b", value), element("span", label, class_="quiet"), class_="tile")
        for value, label in tiles
    )
    return element("div", *inside, class_="tiles")


def _attention(summary: ClassSummary) -> Html:
    if not summary.attention:
        return joined("Nothing: every submission was read, graded and ended by itself.")
    rows = []
    places = {student.name: i for i, student in enumerate(summary.students)}
    for entry in summary.attention:
        word = URGENCY_WORDS[entry.urgency]
        tag = element("span", word, class_=f"tag {word}")
        shown = _name(entry.student)
        who = element("a", shown, href=f"#student-{places[entry.student]}") if entry.student in places else shown
        rows.append((tag, who, entry.where, one_line(entry.sentence, limit=800)))
    return joined(_table(("", "student", "where", "what"), rows), element("p", _LEGEND, class_="quiet"))


def _students(summary: ClassSummary) -> Html:
    heads = ("student", "#points", "#share", *(e.id for e in summary.exercises))
    rows = [
        (
            element("a", _name(s.name), href=f"#student-{i}"),
            marks(s.points, s.max_points),
            joined(f"{s.percent} %", _bar(s.points, s.max_points)) if s.has_mark else "–",
            *(_cell(record) for record in s.exercises),
        )
        for i, s in enumerate(summary.students)
    ]
    return _table(heads, rows)


def _exercises(summary: ClassSummary) -> Html:
    heads = ("exercise", "kind", "#points", "#mean", "#full marks")
    means = (joined(number(round(e.mean, 1)), _bar(e.mean, e.max_points)) for e in summary.exercises)
    rows = [
        (e.id, e.kind, number(e.max_points), mean, f"{e.full} of {e.handed_in}")
        for e, mean in zip(summary.exercises, means, strict=True)
    ]
    return _table(heads, rows)


def _checks(summary: ClassSummary) -> Iterator[Html]:
    heads = ("check", "category", "passed", "#failed", "#error", "#discrimination")
    for exercise in summary.exercises:
        own = [_check(c) for c in summary.checks if c.exercise == exercise.id]
        if own:
            yield joined(element("h3", exercise.id), _table(heads, own))


def _check(check: Check) -> tuple[str, ...]:
    assessed = check.passed + check.failed + check.error
    hidden = joined(" ", element("span", "hidden", class_="tag")) if check.hidden else ""
    skipped = f", {check.not_assessed} not assessed" if check.not_assessed else ""
    passed = joined(f"{check.passed} of {assessed} ({check.percent} %){skipped}", _bar(check.passed, assessed))
    told = discrimination_word(check.discrimination)
    return (joined(check.name, hidden), check.category, passed, number(check.failed), number(check.error), told)


def _misconceptions(summary: ClassSummary) -> Html:
    if not summary.misconceptions:
        return joined("Nothing that two students have in common.")
    rows = [
        (number(len(m.students)), m.exercise, one_line(m.check, limit=80), one_line(m.sentence, limit=400))
        for m in summary.misconceptions
    ]
    return _table(("#students", "exercise", "check", "what they were told"), rows)


def _details(index: int, student: Student) -> Html:
    notes = (f"{r.assignment}: {note}" for r in student.submissions for note in r.notes)
    exercises = (element("div", exercise_html(e, show_hidden=True)) for e in student.exercises if e)
    words = dict.fromkeys(word for e in student.exercises if e and (word := status_word(e)))
    state = f" · {marks(student.points, student.max_points)}{''.join(f' · {word}' for word in words)}"
    head = element("summary", element("b", _name(student.name)), element("span", state, class_="quiet"))
    notes_html = (element("p", note) for note in notes)
    return element("details", head, *notes_html, *exercises, id=f"student-{index}")


def _where(summary: ClassSummary, environment: Environment) -> Html:
    levels = [("sandbox level", "; ".join((str(level), *notes))) for level, notes in summary.sandboxes]
    speed = [("points for speed", summary.speed)] if summary.speed else []
    facts = (*levels, *speed, *environment.facts)
    return element("dl", *(joined(element("dt", k), element("dd", v)) for k, v in facts))


@functools.cache
def _style() -> str:
    """Return the style sheet: one accent colour, light and dark, and a print version."""
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table; a heading that starts with `#` marks a column of numbers."""
    kinds = ["num" if head.startswith("#") else "" for head in heads]
    top = (element("th", head.removeprefix("#"), class_=kind) for head, kind in zip(heads, kinds, strict=True))
    body = (
        element("tr", *(element("td", value, class_=kind) for value, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    return element("table", element("tr", *top), *body)


def _bar(value: float, whole: float) -> Html:
    """Return a bar without text, to be shown beside the same value as a number."""
    inside = element("i", style=f"width:{percent(value, whole)}%")
    return element("div", inside, class_="bar", aria_hidden="true")


def _cell(record: ExerciseRecord | None) -> Html:
    """Return one student's result of one exercise, small."""
    if record is None:
        return element("span", "not handed in", class_="quiet")
    if record.status in WITHOUT_MARK:
        word = "undecided" if record.status is ExerciseStatus.UNDECIDED else "not graded"
        return element("span", word, class_="tag decide")
    full = " ✓" if record.max_points > 0 and record.points >= record.max_points - 1e-9 else ""
    badge = f" · {record.badge.badge} badge" if record.badge and record.badge.badge else ""
    word = status_word(record)
    below = element("div", word, class_="quiet small") if word else ""
    bonus = ""
    if record.bonus is not None and record.bonus.points:
        bonus = element("div", f"bonus {number(record.bonus.points)}", class_="small")
    marked = f"{marks(record.points, record.max_points)}{full}{badge}"
    return joined(marked, _bar(record.points, record.max_points), bonus, below)


def _name(student: str) -> str:
    """Return a student's name, shortened to fit into a table."""
    return one_line(student, limit=60)


def _histogram(bins: Sequence[int]) -> Html:
    """Return an SVG histogram of equally wide bins from 0 to 100 percent; its label gives the same data as text."""
    most = max([1, *bins])
    words = ", ".join(f"{_bin_label(i, len(bins))} %: {count}" for i, count in enumerate(bins) if count)
    return element(
        "svg",
        element("line", x1="0", y1=str(_BASE), x2=str(_WIDTH), y2=str(_BASE)),
        *(_column(i, count, most, len(bins)) for i, count in enumerate(bins)),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"students by percent of the points: {words or 'none'}",
        style=f"width:100%;max-width:{_WIDTH}px;height:auto",
    )


def _bin_label(index: int, count: int) -> str:
    first, after = index * 100 // count, (index + 1) * 100 // count
    return f"{first}–{100 if after == 100 else after - 1}"


def _column(index: int, value: int, most: int, count: int) -> Html:
    step, height = _WIDTH / count, (_BASE - _TOP) * value / most
    left, top, centre = index * step + 6, _BASE - height, (index + 0.5) * step
    tick = _svg_text(_bin_label(index, count), centre, _BASE + 18, "tick")
    if not value:
        return tick
    shape = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{step - 12:.1f}", "height": f"{height:.1f}"}
    return joined(element("rect", **shape, rx="4"), _svg_text(str(value), centre, top - 6, ""), tick)


def _svg_text(text: str, x: float, y: float, kind: str) -> Html:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor="middle", class_=kind)
