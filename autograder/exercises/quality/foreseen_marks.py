"""Tell whether a student could foresee a mark: an answer that passes all visible checks should get most points."""

from autograder.host.exercise import Control
from autograder.host.records import ExerciseRecord

LEAST_SHARE = 0.8  # of the points, for an answer that passes every visible check


def seen_share(record: ExerciseRecord) -> float:
    """Return the part of the visible checks' points that an answer got, as `check` shows it to the student."""
    seen = [check for check in record.checks if not check.hidden]
    return sum(check.points for check in seen) / sum(check.max_points for check in seen)


def unforeseen(control: Control, record: ExerciseRecord) -> str:
    """Return a sentence about a mark that no student could foresee; empty if there is nothing to say.

    A mistake that the task itself names, in the control's `trap`, may cost more.
    """
    share = record.points / record.max_points
    if control.trap or seen_share(record) < 1 or share >= LEAST_SHARE:
        return ""
    return (
        f"It passes all visible checks and gets {share:.0%} of the points; below {LEAST_SHARE:.0%} a visible check "
        "or a sentence of the task must tell."
    )
