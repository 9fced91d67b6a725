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
        late = f"Handed in late, on day {self.days} after the due time"
        if self.days > self.rules.days:
            when = f"after day {self.rules.days}" if self.rules.days else "late"
            return f"{late}; a hand-in that comes {when} earns nothing."
        less = f"{number(self.percent)} % is deducted" if self.percent else "nothing is deducted"
        if not self.free:
            return f"{late}; {less}."
        used = f"{self.free} late day{' is' if self.free == 1 else 's are'} used"
        return f"{late}; {used}, {'and' if self.percent else 'so'} {less}."

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


def deducted_for_lateness(points: float) -> str:
    """Return in words what was deducted.

    >>> deducted_for_lateness(1.5)
    '1.5 points were deducted for lateness'
    """
    return f"{number(round(points, 2))} point{' was' if points == 1 else 's were'} deducted for lateness"


def late_rule(settings: Settings) -> str:
    """Return for students what lateness costs; empty if it costs nothing.

    >>> late_rule(Settings(late=Late(2, 10.0)))
    'each day begun after this time costs 10 % of the points earned, and after 2 days a hand-in earns nothing.'
    """
    if settings.late is None:
        return ""
    most, free = settings.late.days, settings.late_days
    if not most:
        return "a hand-in after this time earns nothing."
    each = f"each day begun after this time costs {number(settings.late.percent_per_day)} % of the points earned"
    days = f"{most} day{'' if most == 1 else 's'}"
    own = f"{free} late day{'' if free == 1 else 's'}"
    course = f"; {own} in the whole course cost{'s' if free == 1 else ''} nothing" if free else ""
    return f"{each}, and after {days} a hand-in earns nothing{course}."
