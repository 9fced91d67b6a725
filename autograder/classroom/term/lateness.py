"""Reckon what late hand-ins of one student cost, by `late` and `late_days` in course.toml.

Each begun day counts, after a quarter of an hour that costs nothing. The student's late days are used up in the order
of due dates; a notebook that comes later than `late.days` earns nothing, and uses none of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.course_settings import Late, Settings
from autograder.host.records import SubmissionRecord
from autograder.host.report.wording import number

GRACE_S = 15 * 60.0
DAY_S = 24 * 60 * 60


@dataclass(frozen=True)
class Lateness:
    """How late a hand-in is, and what is deducted for it."""

    days: int  # begun days after the due date and an extension
    free: int  # of them, those for which late days were used
    percent: float  # of the points earned, that are deducted
    rules: Late

    @property
    def sentence(self) -> str:
        """Return in a sentence how late it is, and why so much is deducted."""
        late = f"Handed in {_counted(self.days)} late"
        if self.days > self.rules.days:
            return f"{late}; after {_counted(self.rules.days)} a hand-in earns nothing."
        used = f"; {_counted(self.free, 'late day')} used" if self.free else ""
        paid = self.days - self.free
        if not paid:
            return f"{late}{used}, so nothing is deducted."
        each = f"{number(self.rules.percent_per_day)} % for each of {_counted(paid)}"
        return f"{late}{used}, {number(self.percent)} % deducted: {each}."

    def deducted(self, points: float) -> float:
        """Return what is deducted from `points`."""
        return round(points * self.percent / 100, 4)


def latenesses(late_s: Iterable[tuple[str, float]], settings: Settings) -> dict[str, Lateness]:
    """Return the lateness of each late notebook of one student.

    `late_s` has the notebooks in the order of their due dates, with the seconds after the student's own due date.

    >>> rules = Settings(late=Late(2, 10.0), late_days=1)
    >>> latenesses([("00_a", 3600.0), ("01_b", 90000.0)], rules)["01_b"].percent
    20.0
    """
    rules, left, found = settings.late, settings.late_days, {}
    for name, seconds in late_s:
        days = math.ceil((seconds - GRACE_S) / DAY_S)
        if rules is None or days <= 0:
            continue
        too_late = days > rules.days
        free = 0 if too_late else min(days, left)
        left -= free
        percent = 100.0 if too_late else min(100.0, (days - free) * rules.percent_per_day)
        found[name] = Lateness(days, free, percent, rules)
    return found


@dataclass(frozen=True)
class LateRecord(SubmissionRecord):
    """A record with what is deducted from the whole notebook; its exercises are as they were graded."""

    deducted: float = 0.0  # points
    late: str = ""  # why

    @property
    def points(self) -> float:
        """Return the points that count, over all exercises."""
        return round(max(0.0, super().points - self.deducted), 6)


def _counted(count: int, what: str = "day") -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
