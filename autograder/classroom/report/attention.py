"""List what a person should look at after a class was graded, most urgent first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from autograder.classroom.report.alike import AlikePair
from autograder.host.records import STOPPED, WITHOUT_MARK, CheckStatus, ExerciseStatus, SpeedVerdict, SubmissionRecord
from autograder.host.report.wording import EXERCISE_WORDS, percent


class Urgency(IntEnum):
    """How urgently a person must look at an entry."""

    MUST = 0  # there is no mark, or one that a person must confirm
    SHOULD = 1  # the mark is valid, but its cause is unusual
    COULD = 2  # for information


URGENCY_WORDS = {Urgency.MUST: "decide", Urgency.SHOULD: "look", Urgency.COULD: "know"}


@dataclass(frozen=True, order=True)
class Attention:
    """One thing to look at."""

    urgency: Urgency
    student: str
    where: str  # an assignment or an exercise
    sentence: str


@dataclass(frozen=True)
class Grouped:
    """Entries that differ only in their students, as one."""

    urgency: Urgency
    students: tuple[str, ...]
    where: str
    sentence: str


_CELL = re.compile(r"\b\d\d_\w+")  # the name of an exercise or of its cells
_ENDED = STOPPED | {ExerciseStatus.MALFORMED_ANSWER}


def attention(records: Iterable[SubmissionRecord]) -> tuple[Attention, ...]:
    """Return everything in `records` that a person should see, sorted by urgency."""
    known = tuple(records)
    single = (*(entry for record in known for entry in _of_record(record)), *_not_assessed(known), *_same_file(known))
    return tuple(sorted(_together(single)))


def _together(entries: Iterable[Attention]) -> Iterator[Attention]:
    """Yield one entry for all sentences with the same student, place and urgency."""
    sentences: dict[tuple[Urgency, str, str], list[str]] = {}
    for entry in entries:
        sentences.setdefault((entry.urgency, entry.student, entry.where), []).append(entry.sentence)
    for place, said in sentences.items():
        yield Attention(*place, " ".join(_alike(dict.fromkeys(said))))


def _alike(sentences: Iterable[str]) -> Iterator[str]:
    """Yield each sentence; of those that differ only in the name of a cell, the first one and the other names."""
    kinds: dict[str, list[str]] = {}
    for sentence in sentences:
        kinds.setdefault(_CELL.sub("…", sentence, count=1), []).append(sentence)
    for first, *others in kinds.values():
        yield first
        if others:
            yield f"The same of {len(others)} more: {', '.join(_CELL.findall(other)[0] for other in others)}."


def grouped(entries: Iterable[Attention]) -> tuple[Grouped, ...]:
    """Return the entries with those that differ only in their student as one; the order stays."""
    together: dict[tuple[Urgency, str, str], list[str]] = {}
    for entry in entries:
        together.setdefault((entry.urgency, entry.where, entry.sentence), []).append(entry.student)
    return tuple(Grouped(u, tuple(students), where, said) for (u, where, said), students in together.items())


def _of_record(record: SubmissionRecord) -> Iterator[Attention]:
    unread = {e.message for e in record.exercises if e.status in (ExerciseStatus.NOT_FOUND, ExerciseStatus.UNDECIDED)}
    for note in record.notes:
        yield Attention(Urgency.MUST if note in unread else Urgency.SHOULD, record.student, record.assignment, note)
    for exercise in record.exercises:
        words = EXERCISE_WORDS[exercise.status]
        if exercise.status is ExerciseStatus.GRADER_ERROR:
            sentence = f"{words.capitalize()}; no points were taken: {exercise.message}"
            yield Attention(Urgency.MUST, record.student, exercise.id, sentence)
        elif exercise.status in _ENDED:
            sentence = f"{words.capitalize()}. {exercise.message}".strip()
            yield Attention(Urgency.SHOULD, record.student, exercise.id, sentence)
        if exercise.speed and exercise.speed.verdict is SpeedVerdict.ENVIRONMENT:
            what = "No bonus was decided" if exercise.bonus else "Counted cost decided the points for speed"
            sentence = f"{what}: {exercise.speed.reason}"
            yield Attention(Urgency.SHOULD, record.student, exercise.id, sentence)
        for copy in exercise.copies:
            sentence = (
                f"`{copy.function}` copies {copy.original}; the student's page shows both texts. It costs no points."
            )
            yield Attention(Urgency.SHOULD, record.student, exercise.id, sentence)
        for flag in exercise.speed.flags if exercise.speed else ():
            yield Attention(Urgency.SHOULD, record.student, exercise.id, flag)
        for flag in exercise.badge.flags if exercise.badge else ():
            yield Attention(Urgency.SHOULD, record.student, exercise.id, flag)


def of_pairs(pairs: Iterable[AlikePair]) -> Iterator[Attention]:
    """Yield an entry for each pair of students with nearly the same answers."""
    for pair in pairs:
        where = ", ".join(sorted({one.exercise for one in pair.answers}))
        least = min(percent(one.share, 1) for one in pair.answers)
        sentence = (
            f"Nearly the same answers, apart from names and layout: at least {least} % of each. The page of similar "
            "answers shows both. It costs no points."
        )
        yield Attention(Urgency.SHOULD, " and ".join(pair.students), where, sentence)


def _same_file(records: Iterable[SubmissionRecord]) -> Iterator[Attention]:
    """Yield an entry for each group of students whose files have equal bytes and at least one answer."""
    together: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if any(e.status is not ExerciseStatus.NOT_FOUND for e in record.exercises):
            together.setdefault((record.assignment, record.submission_sha256), []).append(record.student)
    for (assignment, sha256), students in together.items():
        if len(students) > 1:
            sentence = f"Handed in the same file, equal to the last byte (SHA-256 {sha256[:12]}…)."
            yield Attention(Urgency.SHOULD, ", ".join(students), assignment, sentence)


def _not_assessed(records: Iterable[SubmissionRecord]) -> Iterator[Attention]:
    exercises = [e for r in records for e in r.exercises if e.status not in WITHOUT_MARK]
    checks = ((e.id, c) for e in exercises for c in e.checks)
    counts = Counter((exercise, c.name) for exercise, c in checks if c.status is CheckStatus.NOT_ASSESSED)
    for (exercise, check), count in counts.items():
        sentence = f"Not assessed here, left out of points and maximum: {check}."
        yield Attention(Urgency.COULD, f"{count} submissions", exercise, sentence)
