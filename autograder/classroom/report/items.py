"""Analyse items: which checks separate strong students from weak ones, and the most common misconceptions.

The discrimination of a check is the correlation between the points for it and the points for everything else (the
corrected item-total correlation of classical test theory). A check near 0 says nothing about a student. A check below 0
favours weak students and should be reviewed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from statistics import StatisticsError, correlation

from autograder.host.records import CheckStatus, ExerciseStatus, SubmissionRecord

FEWEST_STUDENTS = 10  # with fewer, a correlation is mostly chance
MOST_MISCONCEPTIONS = 5  # of one notebook
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Misconception:
    """One message that several students got; messages that differ only in numbers are the same."""

    assignment: str
    exercise: str
    check: str
    sentence: str  # as one of the students got it
    students: tuple[str, ...]


def discriminations(records: Sequence[SubmissionRecord]) -> Mapping[tuple[str, str], float]:
    """Return the discrimination (-1 to 1) of each check by exercise and name; checks with equal results are omitted."""
    shares = _shares(records)
    totals: dict[str, list[float]] = {}
    for of_students in shares.values():
        for student, (points, most) in of_students.items():
            sums = totals.setdefault(student, [0.0, 0.0])
            sums[0] += points
            sums[1] += most
    found = {}
    for check, of_students in shares.items():
        rows = [
            (points / most, (totals[student][0] - points) / (totals[student][1] - most))
            for student, (points, most) in of_students.items()
            if totals[student][1] - most > 0
        ]
        if len(rows) >= FEWEST_STUDENTS:
            try:
                found[check] = correlation(*zip(*rows, strict=True))
            except StatisticsError:  # all got the same
                continue
    return found


def _shares(records: Sequence[SubmissionRecord]) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Return points and maximum by check and student, for each check that was assessed."""
    shares: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for record in records:
        for exercise in record.exercises:
            for check in exercise.checks:
                if check.status is not CheckStatus.NOT_ASSESSED and check.max_points > 0:
                    row = shares.setdefault((exercise.id, check.name), {})
                    row[record.student] = (check.points, check.max_points)
    return shares


def misconceptions(records: Sequence[SubmissionRecord]) -> tuple[Misconception, ...]:
    """Return the messages of failed checks that several students got, by notebook, the most common first."""
    said: dict[tuple[str, str, str, str], tuple[str, dict[str, None]]] = {}
    for record in records:
        for exercise in record.exercises:
            if exercise.status is ExerciseStatus.NOT_FOUND:
                continue
            for check in exercise.checks:
                if check.status is CheckStatus.FAILED and check.message:
                    key = (record.assignment, exercise.id, check.name, _NUMBER.sub("…", check.message))
                    said.setdefault(key, (check.message, {}))[1][record.student] = None
    common = [
        Misconception(assignment, exercise, check, sentence, tuple(students))
        for (assignment, exercise, check, _), (sentence, students) in said.items()
        if len(students) > 1
    ]
    common.sort(key=lambda one: (one.assignment, -len(one.students), one.exercise, one.check))
    by_notebook = groupby(common, key=lambda one: one.assignment)
    return tuple(one for _, of_one in by_notebook for one in islice(of_one, MOST_MISCONCEPTIONS))
