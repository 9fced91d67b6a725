"""Summarise each notebook over the class: who handed it in, what it earned, and who fell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from autograder.host.records import WITHOUT_MARK, ExerciseStatus, SubmissionRecord
from autograder.host.report.wording import percent

FALL = 25  # percentage points below a student's mean of the other notebooks
_FEWEST_OTHERS = 2  # with one other notebook, a fall says little


@dataclass(frozen=True)
class Notebook:
    """One notebook over the class."""

    name: str
    exercises: tuple[str, ...]  # ids, in order
    max_points: float
    handed_in: int
    with_mark: int  # of those handed in; mean and median are over these
    mean_percent: float
    median_percent: float
    absent: tuple[str, ...]  # students of the roster who handed in nothing
    fell: tuple[str, ...]  # students at least `FALL` percentage points below their mean of the other notebooks


def has_mark(record: SubmissionRecord) -> bool:
    """Return whether at least one exercise of the hand-in was graded."""
    return any(e.status not in WITHOUT_MARK for e in record.exercises)


def open_word(record: SubmissionRecord) -> str:
    """Return in a word why a hand-in has no mark; empty if it has one."""
    if has_mark(record) or not record.exercises:
        return ""
    undecided = any(e.status is ExerciseStatus.UNDECIDED for e in record.exercises)
    return "undecided" if undecided else "not graded"


def share(record: SubmissionRecord) -> str:
    """Return the percentage of a hand-in's points, with a star if one of its answers has no mark."""
    star = "*" if any(e.status in WITHOUT_MARK for e in record.exercises) else ""
    return f"{percent(record.points, record.max_points)}{star}"


def notebooks(records: Sequence[SubmissionRecord], absent: Mapping[str, Iterable[str]]) -> tuple[Notebook, ...]:
    """Return one entry for each notebook of `records`, by name; `absent` lists who handed in nothing, by notebook."""
    shares: dict[str, dict[str, int]] = {}  # percent of a notebook's points by student and notebook
    found: dict[str, list[SubmissionRecord]] = {}
    for record in records:
        found.setdefault(record.assignment, []).append(record)
        if has_mark(record):
            shares.setdefault(record.student, {})[record.assignment] = percent(record.points, record.max_points)
    return tuple(_notebook(name, found[name], shares, tuple(absent.get(name, ()))) for name in sorted(found))


def _notebook(
    name: str, records: Sequence[SubmissionRecord], shares: Mapping[str, Mapping[str, int]], absent: tuple[str, ...]
) -> Notebook:
    own = [shares[r.student][name] for r in records if has_mark(r)]
    return Notebook(
        name,
        tuple(sorted({e.id for r in records for e in r.exercises})),
        max((r.max_points for r in records), default=0.0),
        handed_in=len(records),
        with_mark=len(own),
        mean_percent=fmean(own) if own else 0.0,
        median_percent=float(median(own)) if own else 0.0,
        absent=absent,
        fell=tuple(r.student for r in records if has_mark(r) and _fell(shares[r.student], name)),
    )


def _fell(of_student: Mapping[str, int], name: str) -> bool:
    others = [share for notebook, share in of_student.items() if notebook != name]
    return len(others) >= _FEWEST_OTHERS and of_student[name] <= fmean(others) - FALL
