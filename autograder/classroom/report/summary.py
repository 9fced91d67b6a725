"""Summarise a class as data: each student's marks, each check over the class, and what a person should look at.

The HTML page and the text of the class report are made from this summary only.
"""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean, median

from autograder.classroom.report.alike import AlikePair
from autograder.classroom.report.attention import Attention, attention, of_pairs
from autograder.classroom.report.items import Misconception, discriminations, misconceptions
from autograder.classroom.report.notebooks import Notebook, has_mark, notebooks
from autograder.host.records import GRADER_VERSION, WITHOUT_MARK, CheckStatus, ExerciseRecord, SubmissionRecord
from autograder.host.report.wording import percent

BINS = 10
EXERCISE_BINS = 5


@dataclass(frozen=True)
class Student:
    """One row of the class: the results of one student."""

    name: str  # the id
    shown: str  # the name in the roster, or the id
    submissions: tuple[SubmissionRecord, ...]
    exercises: tuple[ExerciseRecord | None, ...]  # one per column; None: not handed in
    points: float
    max_points: float  # of all exercises of the class, so that a missing exercise counts as 0

    @property
    def percent(self) -> int:
        """Return the points as a percentage of `max_points`."""
        return percent(self.points, self.max_points)

    @property
    def has_mark(self) -> bool:
        """Return whether at least one exercise of a hand-in was graded."""
        return any(has_mark(record) for record in self.submissions)

    def handed_in(self, notebook: str) -> SubmissionRecord | None:
        """Return the record of a notebook, or None if it was not handed in."""
        return next((record for record in self.submissions if record.assignment == notebook), None)


@dataclass(frozen=True)
class Exercise:
    """One column of the class."""

    id: str
    kind: str
    max_points: float
    mean: float  # points, over those who handed it in
    full: int  # number of students with all points
    handed_in: int
    bins: tuple[int, ...]  # number of students by percent of the points, in `EXERCISE_BINS` equal bins
    counts: bool  # False if the course leaves it out of its marks

    @property
    def heading(self) -> str:
        """Return the exercise's id, and that it does not count if it does not."""
        return self.id if self.counts else f"{self.id} (not counted)"


@dataclass(frozen=True)
class Check:
    """The results of one check of one exercise over the class."""

    exercise: str
    name: str
    category: str
    hidden: bool
    passed: int
    failed: int
    error: int
    not_assessed: int
    discrimination: float | None  # see `items`; None if too few were graded, or all got the same

    @property
    def percent(self) -> int:
        """Return how often the check passed, as a percentage of how often it was assessed."""
        return percent(self.passed, self.passed + self.failed + self.error)


@dataclass(frozen=True)
class ClassSummary:
    """All data of a class report."""

    students: tuple[Student, ...]  # all who handed in something, or stand in the roster
    notebooks: tuple[Notebook, ...]
    exercises: tuple[Exercise, ...]
    checks: tuple[Check, ...]
    misconceptions: tuple[Misconception, ...]  # by notebook, the most common first
    attention: tuple[Attention, ...]
    alike: tuple[AlikePair, ...]  # students with nearly the same answers
    bins: tuple[int, ...]  # number of students with a mark by percent: 0 to 9, 10 to 19, …, 90 to 100
    sandboxes: tuple[tuple[int, tuple[str, ...]], ...]  # the levels and notes in the records
    speed: str  # in how many answers the points for speed were counted and measured; empty without such points
    mean_percent: float  # over the students with a mark, as the median
    median_percent: float

    @property
    def without_mark(self) -> int:
        """Return how many students have no mark; they are left out of mean, median and bins."""
        return sum(not student.has_mark for student in self.students)


def summarise(
    records: Iterable[SubmissionRecord],
    also: Iterable[Attention] = (),
    *,
    absent: Mapping[str, Iterable[str]] | None = None,
    names: Mapping[str, str] | None = None,
    alike: Sequence[AlikePair] = (),
) -> ClassSummary:
    """Summarise the records of a class; of two records for one student and assignment, the last one counts.

    `also` lists further entries that need a person's attention, `absent` the students who handed in nothing, by
    notebook, `names` what students are called, by id, and `alike` pairs of students with nearly the same answers.
    """
    away = {name: tuple(students) for name, students in (absent or {}).items()}
    latest = {(r.student, r.assignment): r for r in records}
    ordered = [latest[key] for key in sorted(latest)]
    exercises = _exercises(ordered)
    students = _students(ordered, exercises, {s for of_one in away.values() for s in of_one}, names or {})
    shares = [student.percent for student in students if student.has_mark]
    return ClassSummary(
        students=students,
        notebooks=notebooks(ordered, away),
        exercises=exercises,
        checks=_checks(ordered),
        misconceptions=misconceptions(ordered),
        attention=tuple(sorted((*attention(ordered), *of_pairs(alike), *also))),
        alike=tuple(alike),
        bins=_bins(shares, BINS),
        sandboxes=tuple(sorted({(r.sandbox.level, r.sandbox.notes) for r in ordered})),
        speed=_speed(ordered),
        mean_percent=fmean(shares) if shares else 0.0,
        median_percent=float(median(shares)) if shares else 0.0,
    )


def _bins(shares: Iterable[int], count: int) -> tuple[int, ...]:
    """Return how many of these percentages lie in each of `count` equal bins from 0 to 100; 100 is in the last."""
    found = Counter(min(share * count // 100, count - 1) for share in shares)
    return tuple(found[i] for i in range(count))


def _speed(records: Iterable[SubmissionRecord]) -> str:
    """Return in how many answers the points for speed were counted and measured; empty if no exercise has any."""
    answers = (e for record in records for e in record.exercises)
    decided = Counter(str(by) for e in answers for by in {check.by for check in e.checks if check.by})
    return ", ".join(f"{by} in {number} answers" for by, number in sorted(decided.items()))


def _exercises(records: Sequence[SubmissionRecord]) -> tuple[Exercise, ...]:
    found: dict[str, list[ExerciseRecord]] = {}
    for exercise in (e for r in records for e in r.exercises):
        found.setdefault(exercise.id, []).append(exercise)
    return tuple(_exercise(name, found[name]) for name in sorted(found))


def _exercise(name: str, of_class: Sequence[ExerciseRecord]) -> Exercise:
    assessed = [e for e in of_class if e.status not in WITHOUT_MARK]
    most = max((e.max_points for e in assessed), default=0.0)
    full = sum(1 for e in assessed if e.max_points > 0 and e.points >= e.max_points - 1e-9)
    mean = fmean(e.points for e in assessed) if assessed else 0.0
    bins = _bins((percent(e.points, e.max_points) for e in assessed), EXERCISE_BINS)
    return Exercise(name, of_class[0].kind, most, mean, full, len(of_class), bins, of_class[0].counts)


def _students(
    records: Sequence[SubmissionRecord], exercises: Sequence[Exercise], also: Iterable[str], names: Mapping[str, str]
) -> tuple[Student, ...]:
    by_name: dict[str, list[SubmissionRecord]] = {name: [] for name in also}
    for record in records:
        by_name.setdefault(record.student, []).append(record)
    return tuple(_student(name, names.get(name) or name, by_name[name], exercises) for name in sorted(by_name))


def _student(name: str, shown: str, records: Sequence[SubmissionRecord], exercises: Sequence[Exercise]) -> Student:
    own = {e.id: e for r in records for e in r.exercises}
    row = tuple(own.get(exercise.id) for exercise in exercises)
    # the maximum excludes checks that were not assessed, but includes exercises that were not handed in
    most = sum(
        e.max_points if (e := own.get(column.id)) else column.max_points for column in exercises if column.counts
    )
    return Student(name, shown, tuple(records), row, sum(r.points for r in records), most)


def _checks(records: Sequence[SubmissionRecord]) -> tuple[Check, ...]:
    counts: dict[tuple[str, str], Counter[CheckStatus]] = {}
    about: dict[tuple[str, str], tuple[str, bool]] = {}
    discrimination = discriminations(records)
    for exercise in (e for r in records for e in r.exercises):
        for check in exercise.checks:
            key = (exercise.id, check.name)
            about.setdefault(key, (check.category, check.hidden))
            counts.setdefault(key, Counter())[check.status] += 1
    return tuple(
        Check(
            *key,
            *about[key],
            passed=count[CheckStatus.PASSED],
            failed=count[CheckStatus.FAILED],
            error=count[CheckStatus.ERROR],
            not_assessed=count[CheckStatus.NOT_ASSESSED],
            discrimination=discrimination.get(key),
        )
        for key, count in sorted(counts.items(), key=lambda item: item[0][0])
    )


@dataclass(frozen=True)
class Environment:
    """The versions and the machine with which a class was graded, so that marks can be checked later."""

    facts: tuple[tuple[str, str], ...]


def this_environment(*extra: tuple[str, str]) -> Environment:
    """Return the facts about this process and machine, followed by `extra` facts."""
    facts = (
        ("grader", GRADER_VERSION),
        ("Python", platform.python_version()),
        ("PyTorch", _version("torch")),
        ("nbgrader", _version("nbgrader")),
        ("machine", f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores"),
    )
    return Environment((*facts, *extra))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
