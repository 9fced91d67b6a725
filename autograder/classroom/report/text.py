"""Write the class report as text for a terminal."""

from collections.abc import Iterator

from autograder.classroom.report.attention import URGENCY_WORDS, grouped
from autograder.classroom.report.notebooks import FALL, open_word, share
from autograder.classroom.report.summary import BINS, ClassSummary, Environment
from autograder.host.records import SubmissionRecord
from autograder.host.report.safe_text import one_line
from autograder.host.report.wording import discrimination_word, marks, number

BAR_CHARACTERS = 20


def class_text(summary: ClassSummary, *, title: str, environment: Environment) -> str:
    """Return the class report as plain text, with what the page shows about the whole class."""
    sections = (
        [title, "=" * len(title), _key_numbers(summary)],
        ["Notebooks", *_notebooks(summary)],
        ["Students", *_students(summary)],
        ["Exercises", *_exercises(summary)],
        ["Checks: passed by how many, and discrimination (see the page)", *_checks(summary)],
        ["What several students got wrong", *_misconceptions(summary)],
        ["Distribution", *_distribution(summary)],
        ["What needs a person", *_attention(summary)],
        ["Where it was graded", *_where(summary, environment)],
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _key_numbers(summary: ClassSummary) -> str:
    left_out = f" ({summary.without_mark} without a mark, left out of mean and median)" if summary.without_mark else ""
    return (
        f"{len(summary.students)} students{left_out} · mean {summary.mean_percent:.0f} % · "
        f"median {summary.median_percent:.0f} % · {len(grouped(summary.attention))} things to look at"
    )


def _students(summary: ClassSummary) -> Iterator[str]:
    names = [one_line(s.shown, limit=28) for s in summary.students]
    width = max((len(n) for n in names), default=0)
    heads = [notebook.name.partition("_")[0][:4] for notebook in summary.notebooks]
    yield f"  {'':<{width}}  {'points':>13}        {' '.join(f'{head:>4}' for head in heads)}"
    for name, student in zip(names, summary.students, strict=True):
        cells = " ".join(f"{_cell(student.handed_in(notebook.name)):>4}" for notebook in summary.notebooks)
        points = marks(student.points, student.max_points)
        share = f"{student.percent:>3} %" if student.has_mark else f"{'–':>5}"
        yield f"  {name:<{width}}  {points:>13} {share}  {cells}"
    yield "  under a notebook: percent of its points; · not handed in; ? no mark; * one of its answers has none"
    for name, student in zip(names, summary.students, strict=True):
        for record in student.submissions:
            if word := open_word(record):
                yield f"  ? {name}: {record.assignment} is {word}"


def _cell(record: SubmissionRecord | None) -> str:
    if record is None:
        return "·"
    return "?" if open_word(record) else share(record)


def _notebooks(summary: ClassSummary) -> Iterator[str]:
    names = {student.name: student.shown for student in summary.students}
    for n in summary.notebooks:
        shares = f"mean {n.mean_percent:>3.0f} %, median {n.median_percent:>3.0f} %" if n.with_mark else "no marks"
        yield f"  {n.name:<22} {n.handed_in:>3} handed in, {shares}"
        for words, students in (("handed in nothing", n.absent), (f"fell by {FALL} or more", n.fell)):
            if students:
                yield f"      {words}: {', '.join(one_line(names.get(s, s), limit=60) for s in students)}"


def _exercises(summary: ClassSummary) -> Iterator[str]:
    for e in summary.exercises:
        yield (
            f"  {e.heading:<26} {e.kind:<9} mean {number(round(e.mean, 1)):>4} of {number(e.max_points):<4}"
            f" full marks {e.full} of {e.handed_in}"
        )


def _checks(summary: ClassSummary) -> Iterator[str]:
    exercise = ""
    for check in summary.checks:
        if check.exercise != exercise:
            exercise = check.exercise
            yield f"  {exercise}"
        assessed = check.passed + check.failed + check.error
        label = f"{one_line(check.name, limit=46)}{' (hidden)' if check.hidden else ''}"
        told = discrimination_word(check.discrimination)
        yield f"    {_bar(check.passed, assessed)} {check.passed:>3} of {assessed:<3} {told:>5}  {label}"


def _misconceptions(summary: ClassSummary) -> Iterator[str]:
    if not summary.misconceptions:
        yield "  nothing that two students have in common"
    for m in summary.misconceptions:
        yield f"  {len(m.students):>3} students · {m.exercise} · {one_line(m.check, limit=60)}"
        yield f"      {one_line(m.sentence, limit=200)}"


def _distribution(summary: ClassSummary) -> Iterator[str]:
    most = max(summary.bins, default=0)
    for i, count in enumerate(summary.bins):
        last = 100 if i == BINS - 1 else (i + 1) * 100 // BINS - 1
        yield f"  {i * 100 // BINS:>3}–{last:<3} % {_bar(count, most)} {count}"


def _attention(summary: ClassSummary) -> Iterator[str]:
    if not summary.attention:
        yield "  nothing"
    names = {student.name: student.shown for student in summary.students}
    for entry in grouped(summary.attention):
        word = URGENCY_WORDS[entry.urgency]
        who = ", ".join(one_line(names.get(student, student)) for student in entry.students)
        where = f"{who} · {one_line(entry.where)}"
        yield f"  [{word:<6}] {where}: {one_line(entry.sentence, limit=400)}"


def _where(summary: ClassSummary, environment: Environment) -> Iterator[str]:
    for level, notes in summary.sandboxes:
        yield f"  sandbox level {level}{''.join(f'; {one_line(note)}' for note in notes)}"
    if summary.speed:
        yield f"  points for speed: {summary.speed}"
    for name, value in environment.facts:
        yield f"  {one_line(name)}: {one_line(value)}"


def _bar(value: float, whole: float) -> str:
    filled = round(BAR_CHARACTERS * value / whole) if whole else 0
    return "█" * filled + "·" * (BAR_CHARACTERS - filled)
