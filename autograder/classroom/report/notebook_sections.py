"""Write the notebooks of a class report: one line each, and folded out its exercises, checks and mistakes."""

from collections.abc import Iterator

from autograder.classroom.report.notebooks import FALL, Notebook
from autograder.classroom.report.parts import bar, short, small_histogram, table
from autograder.classroom.report.summary import Check, ClassSummary
from autograder.host.report.safe_text import Html, element, joined, one_line
from autograder.host.report.wording import discrimination_word, number

_DISCRIMINATION = (
    "passed: the easier a check, the more. "
    "discrimination: correlation of the check with all other points, from -1 to 1, for ten students and more; "
    "near 0 the check says nothing about a student, below 0 look at the check"
)


def overview(summary: ClassSummary) -> Html:
    """Return a table with a line for each notebook, which leads to its part below."""
    heads = ("notebook", "#handed in", "#absent", "#mean", "#median", f"fell by {FALL} percentage points or more")
    names = {student.name: student.shown for student in summary.students}
    rows = [
        (
            element("a", notebook.name, href=f"#{notebook.name}"),
            number(notebook.handed_in),
            number(len(notebook.absent)) if notebook.absent else "–",
            joined(f"{notebook.mean_percent:.0f} %", bar(notebook.mean_percent, 100)) if notebook.with_mark else "–",
            f"{notebook.median_percent:.0f} %" if notebook.with_mark else "–",
            ", ".join(short(names[student]) for student in notebook.fell) or "–",
        )
        for notebook in summary.notebooks
    ]
    told = "mean and median: of those with a mark; fell: against the student's own mean of the other notebooks"
    return joined(table(heads, rows), element("p", told, class_="quiet"))


def each_notebook(summary: ClassSummary) -> Html:
    """Return all notebooks, folded."""
    return joined(*(_notebook(summary, notebook) for notebook in summary.notebooks))


def _notebook(summary: ClassSummary, notebook: Notebook) -> Html:
    state = f" · mean {notebook.mean_percent:.0f} %" if notebook.with_mark else ""
    head = element(
        "summary",
        element("b", notebook.name),
        element("span", f" · {notebook.handed_in} handed in{state}", class_="quiet"),
    )
    return element("details", head, *_inside(summary, notebook), id=notebook.name)


def _inside(summary: ClassSummary, notebook: Notebook) -> Iterator[Html]:
    if notebook.absent:
        names = {student.name: student.shown for student in summary.students}
        absent = ", ".join(short(names.get(student, student)) for student in notebook.absent)
        yield element("p", element("b", "Handed in nothing: "), absent)
    yield _exercises(summary, notebook)
    yield element("h3", "What several students got wrong")
    yield _misconceptions(summary, notebook)
    for exercise in notebook.exercises:
        own = [_check(check) for check in summary.checks if check.exercise == exercise]
        if own:
            yield element("h3", exercise)
            yield table(("check", "category", "passed", "#discrimination", "#failed", "#error"), own, class_="checks")
    yield element("p", _DISCRIMINATION, class_="quiet")


def _exercises(summary: ClassSummary, notebook: Notebook) -> Html:
    heads = ("exercise", "kind", "#points", "#mean", "#full marks", "#answers by percent, 0 to 100")
    rows = [
        (
            e.heading,
            e.kind,
            number(e.max_points),
            joined(number(round(e.mean, 1)), bar(e.mean, e.max_points)),
            f"{e.full} of {e.handed_in}",
            small_histogram(e.bins),
        )
        for e in summary.exercises
        if e.id in notebook.exercises
    ]
    return table(heads, rows)


def _check(check: Check) -> tuple[str, ...]:
    assessed = check.passed + check.failed + check.error
    hidden = joined(" ", element("span", "hidden", class_="tag")) if check.hidden else ""
    skipped = f", {check.not_assessed} not assessed" if check.not_assessed else ""
    passed = joined(f"{check.passed} of {assessed} ({check.percent} %){skipped}", bar(check.passed, assessed))
    told = discrimination_word(check.discrimination)
    return (joined(check.name, hidden), check.category, passed, told, number(check.failed), number(check.error))


def _misconceptions(summary: ClassSummary, notebook: Notebook) -> Html:
    rows = [
        (number(len(m.students)), m.exercise, one_line(m.check, limit=80), one_line(m.sentence, limit=400))
        for m in summary.misconceptions
        if m.assignment == notebook.name
    ]
    if not rows:
        return element("p", "Nothing that two students have in common.")
    return table(("#students", "exercise", "check", "what they were told"), rows)
