"""Give one student more time for one notebook: `autograder extend STUDENT NOTEBOOK --days 3`.

nbgrader keeps an extension with a hand-in, so a student could not get one before handing in. Here it is also kept in a
file, and the gradebook gets it with the hand-in. What a person enters in the gradebook later, as with nbgrader's own
`grant_extension`, holds.
"""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.utils import parse_utc

from autograder.classroom.nbgrader.course import Course, quiet_additions
from autograder.classroom.report.attention import Attention, Urgency
from autograder.classroom.status import UsageError
from autograder.classroom.term.due_dates import due_in, enter_due_dates, in_gradebook, shown_in
from autograder.classroom.whole_files import write_whole
from autograder.course_settings import Settings

FILE = "extensions.json"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Extension:
    """More time for one student and notebook: until a time in UTC, or for some days after the due date."""

    assignment: str
    student: str
    until: str = ""
    days: float = 0.0
    entered_s: float | None = None  # the length that the gradebook got from here; None if it got none yet

    def length(self, due: datetime) -> timedelta:
        """Return the time after the due date `due`."""
        after = datetime.fromisoformat(self.until) - due if self.until else self.days * DAY
        return max(after, timedelta(0))


def extend(course: Course, student: str, assignment: str, *, until: str = "", days: float = 0.0) -> str:
    """Give `student` time until `until`, or `days` after the due date, and return a sentence about it.

    The time is in the course's zone, else in UTC, unless it ends with another, as `"2030-01-18 12:00 Europe/Berlin"`.
    With neither time nor days, the extension is taken back. Raises `UsageError` for an unknown name, a time that cannot
    be read or is too early, or a notebook without a due date.
    """
    (name,) = course.chosen([assignment])
    rules = course.rules()
    with course.gradebook() as gradebook:
        enter_due_dates(gradebook, rules)
        due = _due(gradebook, name)
        known = {one.id for one in gradebook.students}
        if student not in known and not (course.submitted / student).is_dir():
            raise UsageError(f"no student is called {student!r}; the roster has {len(known)}.")
        given = Extension(name, student, _time(until, due, rules, name) if until else "", days)
        others = [one for one in kept(course.journal) if (one.assignment, one.student) != (name, student)]
        with contextlib.suppress(MissingEntry):
            given = _entered(gradebook.find_submission(name, student), given, due)
            gradebook.db.commit()
        _keep(course, [*others, given] if given.length(due) else others)
    if not given.length(due):
        return f"{student} has no extension of {name}; it is due {shown_in(due, rules, name)}."
    until = end_of(due, given.length(due), rules, name)
    return f"{student} has until {until} for {name}. The next grading takes it into the marks."


def deadline(gradebook: Gradebook, extensions: Iterable[Extension], assignment: str, student: str) -> datetime | None:
    """Return until when a student can hand in, in UTC, with the extension in the gradebook or else in `extensions`."""
    try:
        due: datetime | None = gradebook.find_assignment(assignment).duedate
    except MissingEntry:
        return None
    return _own(gradebook, due, extensions, assignment, student)


def deadlines_of(
    gradebook: Gradebook, journal: Path, assignment: str, students: Iterable[str]
) -> dict[str, datetime | None]:
    """Return until when each of these students can hand in, in UTC; None without a due date."""
    extensions = kept(journal)
    return {student: deadline(gradebook, extensions, assignment, student) for student in students}


def deadlines(course: Course, assignment: str) -> tuple[datetime | None, dict[str, datetime]]:
    """Return when the notebook is due, and until when each student can hand in, in UTC; nothing is entered."""
    extensions = kept(course.journal)
    with course.gradebook() as gradebook:
        due = due_in(gradebook, course.rules(), assignment)
        known = {one.id for one in gradebook.students}
        known |= {one.student for one in extensions if one.assignment == assignment}  # also outside the roster
        ends = {student: _own(gradebook, due, extensions, assignment, student) for student in known}
    return due, {student: end for student, end in ends.items() if end is not None}


def _own(
    gradebook: Gradebook, due: datetime | None, extensions: Iterable[Extension], assignment: str, student: str
) -> datetime | None:
    given = next((one for one in extensions if (one.assignment, one.student) == (assignment, student)), None)
    entered = None
    with contextlib.suppress(MissingEntry):
        entered = gradebook.find_submission(assignment, student).extension
    if due is None:
        return None
    if given is not None and (entered.total_seconds() if entered else None) == given.entered_s:
        return due + given.length(due)
    return due + (entered or timedelta(0))


def enter_extensions(course: Course, hand_ins: Collection[tuple[str, str]]) -> None:
    """Enter the extensions of these hand-ins, each as assignment and student, in the gradebook.

    Where a person has entered another one there, that one holds.
    """
    with course.gradebook() as gradebook, quiet_additions():
        done = [
            _enter(gradebook, one) if (one.assignment, one.student) in hand_ins else one for one in kept(course.journal)
        ]
        gradebook.db.commit()
    if done:
        _keep(course, done)


def extended(course: Course, hand_ins: Collection[tuple[str, str]]) -> Iterator[Attention]:
    """Yield an entry for each hand-in with an extension, from here or from the gradebook."""
    rules = course.rules()
    with course.gradebook() as gradebook:
        found = gradebook.db.query(SubmittedAssignment).filter(SubmittedAssignment.extension.isnot(None)).all()
        for submission in found:
            place = (submission.assignment.name, submission.student.id)
            if place in hand_ins and submission.assignment.duedate is not None:
                until = end_of(submission.assignment.duedate, submission.extension, rules, place[0])
                yield Attention(Urgency.COULD, place[1], place[0], f"Has an extension until {until}.")


def kept(journal: Path) -> list[Extension]:
    """Return the extensions that were given with `autograder extend`, from the folder of the journal."""
    path = journal.with_name(FILE)
    return [Extension(**one) for one in json.loads(path.read_text(encoding="utf-8"))] if path.is_file() else []


def days_of(length: timedelta | None) -> float | str:
    """Return an extension in days, for a table; empty if there is none."""
    return round(length / DAY, 2) if length else ""


def _enter(gradebook: Gradebook, one: Extension) -> Extension:
    try:
        due = gradebook.find_assignment(one.assignment).duedate
        gradebook.update_or_create_student(one.student)
        submission = gradebook.update_or_create_submission(one.assignment, one.student)
    except MissingEntry:
        return one
    there = submission.extension.total_seconds() if submission.extension else None
    return _entered(submission, one, due) if due is not None and there == one.entered_s else one


def _entered(submission: Any, one: Extension, due: datetime) -> Extension:
    length = one.length(due)
    submission.extension = length or None
    return replace(one, entered_s=length.total_seconds() if length else None)


def _due(gradebook: Gradebook, assignment: str) -> datetime:
    try:
        due: datetime | None = gradebook.find_assignment(assignment).duedate
    except MissingEntry:
        due = None
    if due is None:
        line = f'"{assignment}" = 2030-01-15T12:00:00+01:00'
        told = "there is nothing to extend; set one below [due] in course.toml"
        raise UsageError(f"{assignment} has no due date, so {told}: {line}")
    return due


def _time(text: str, due: datetime, rules: Settings, assignment: str) -> str:
    try:
        found = _in_utc(text, rules.time_zone)
    except Exception:  # the parser of dates has more errors than it names
        raise UsageError(f"{text!r} cannot be read as a time; write it as 2030-01-18 12:00 UTC.") from None
    if found <= due:
        given, due_text = (shown_in(when, rules, assignment) for when in (found, due))
        raise UsageError(f"{given} is not after the due date, {due_text}.")
    return found.isoformat()


def _in_utc(text: str, zone: str) -> datetime:
    """Return the time in UTC; without a zone of its own it is in `zone`, or in UTC if that is empty."""
    if zone:
        with contextlib.suppress(ValueError):  # fromisoformat knows no names of zones
            when = datetime.fromisoformat(text)
            return in_gradebook(when if when.tzinfo else when.replace(tzinfo=ZoneInfo(zone)))
    found: datetime = parse_utc(text)
    return found


def end_of(due: datetime, length: timedelta, rules: Settings, assignment: str) -> str:
    """Return the time until which an extension lasts, and its length, as text."""
    days = f"{length / DAY:.3g}"
    return f"{shown_in(due + length, rules, assignment)}, {days} day{'' if days == '1' else 's'} after the due date"


def _keep(course: Course, extensions: Iterable[Extension]) -> None:
    write_whole(course.journal.with_name(FILE), json.dumps([asdict(one) for one in extensions], indent=1))
