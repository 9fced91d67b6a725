"""The report of one exercise as plain text, for terminals and other places that do not show HTML."""

import textwrap
from collections.abc import Iterator, Sequence

from autograder.host.records import CheckRecord, ExerciseRecord, ExerciseStatus, SpeedRecord
from autograder.host.report import wording
from autograder.host.report.safe_text import one_line, printable
from autograder.host.value_cap import condition

WIDTH = 100
BAR_CHARACTERS = 24
LINE_CHARACTERS = 40


def exercise_text(record: ExerciseRecord, *, notes: Sequence[str] = (), show_hidden: bool = False) -> str:
    """Return the report of one exercise in plain text.

    Hidden checks appear by category only; `show_hidden` is for instructors. `notes` are sentences to put below the
    marks.
    """
    return "\n".join(_lines(record, notes, show_hidden))


def _lines(record: ExerciseRecord, notes: Sequence[str], show_hidden: bool) -> Iterator[str]:
    status = "" if record.status is ExerciseStatus.GRADED else f" · {wording.EXERCISE_WORDS[record.status]}"
    yield f"{one_line(record.id)}: {wording.marks(record.points, record.max_points)} points{status}"
    for sentence in (record.message, condition(record), *notes):
        if sentence:
            yield _indented(sentence, 2)
    for check in record.checks:
        if show_hidden or not check.hidden:
            yield from _check(check, record)
    if not show_hidden:
        for group in wording.hidden_categories(record.checks):
            yield _row(group, f"hidden: {one_line(group.category)}{wording.earned_by(group.by)}", record.status)
    yield from _quantities(record)


def _check(check: CheckRecord, record: ExerciseRecord) -> Iterator[str]:
    label = f"{one_line(check.name)} (hidden)" if check.hidden else one_line(check.name)
    yield _row(check, f"{label}{wording.earned_by(check.by)}", record.status)
    if check.message not in ("", record.message):
        yield _indented(check.message, 6)


def _row(check: CheckRecord | wording.HiddenCategory, label: str, exercise: ExerciseStatus) -> str:
    return f"  {wording.check_words(check.status, exercise):<20}{label:<52} {wording.check_marks(check):>9}"


def _quantities(record: ExerciseRecord) -> Iterator[str]:
    pairs, others = wording.with_minimum(dict(record.counted))
    for key, value, minimum in pairs:
        yield f"  {wording.quantity_name(one_line(key))}: {wording.number(value)} (minimum {wording.number(minimum)})"
        longest = max(value, minimum, 1e-12)
        yield f"      yours   {_bar(value / longest)}"
        yield f"      minimum {_bar(minimum / longest)}"
    for key, value in (*others, *record.measured.items()):
        yield f"  {wording.quantity(one_line(key), value)}"
    if record.bonus is not None:
        yield f"  bonus: {wording.bonus_headline(record.bonus)}"
        yield _indented(wording.bonus_reason(record.bonus), 6)
    if record.speed is not None:
        yield from _speed(record.speed, wording.speed_words(record))
    if record.badge is not None:
        yield f"  bandwidth badge, no points: {wording.kernel_headline(record.badge)}"
        for words in filter(None, (wording.kernel_details(record.badge), record.badge.reason)):
            yield _indented(words, 6)


_SIGNS = {"same": "1", "passing": "p", "full": "f", "ideal": "i"}


def _speed(speed: SpeedRecord, decided: str) -> Iterator[str]:
    yield f"  measured speed: {wording.speed_headline(speed)} · {decided}"
    at = {name: round(place * (LINE_CHARACTERS - 1)) for name, place in wording.speed_places(speed).items()}
    line = ["·"] * LINE_CHARACTERS
    line[at["low"] : at["high"] + 1] = "═" * (at["high"] + 1 - at["low"])
    labels = wording.speed_marks(speed)
    for name in labels:
        line[at[name]] = _SIGNS[name]
    line[at["ratio"]] = "█"
    signs = ", ".join((f"{_SIGNS[name]} = {label}" for name, label in labels.items()))
    yield f"      {''.join(line)}"
    yield f"      █ = {speed.ratio:.2f} yours, {signs}"
    causes = (wording.speed_details(speed), wording.speed_cost(speed), wording.speed_roofline(speed), speed.reason)
    for words in (wording.speed_doubt(speed), wording.speed_asked(speed), *causes):
        if words:
            yield _indented(words, 6)


def _bar(share: float) -> str:
    return "█" * max(1, round(BAR_CHARACTERS * share)) if share > 0 else "(none)"


def _indented(text: str, spaces: int) -> str:
    wrapped = [textwrap.fill(line, WIDTH - spaces) for line in printable(text).splitlines()]
    return textwrap.indent("\n".join(wrapped), " " * spaces)
