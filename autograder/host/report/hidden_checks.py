"""What students may see of hidden checks: their category, and whether all checks of that category passed."""

from collections.abc import Iterable
from dataclasses import dataclass

from autograder.host.records import CheckRecord, CheckStatus

# a category shows its worst status
_WORST_FIRST = (CheckStatus.ERROR, CheckStatus.FAILED, CheckStatus.PASSED, CheckStatus.NOT_ASSESSED)


@dataclass(frozen=True)
class HiddenCategory:
    """All hidden checks of one category, as one line."""

    category: str
    status: CheckStatus
    points: float
    max_points: float


def hidden_categories(checks: Iterable[CheckRecord]) -> list[HiddenCategory]:
    """Return one line for each category of hidden ones among `checks`, in order of first appearance."""
    groups: dict[str, list[CheckRecord]] = {}
    for check in checks:
        if check.hidden:
            groups.setdefault(check.category, []).append(check)
    return [_one_line(category, group) for category, group in groups.items()]


def _one_line(category: str, group: list[CheckRecord]) -> HiddenCategory:
    statuses = {check.status for check in group}
    worst = next(status for status in _WORST_FIRST if status in statuses)
    points, max_points = sum(c.points for c in group), sum(c.max_points for c in group)
    return HiddenCategory(category, worst, points, max_points)
