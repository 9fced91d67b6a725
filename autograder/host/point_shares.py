"""Shares of a check's points: every case is worth as much as another, and so is every kind of place in one."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import TypeVar

from autograder.host.exercise import CheckFailedError
from autograder.host.session import AnswerFailedError

Case = TypeVar("Case")


def share_among(
    cases: Sequence[Case],
    require: Callable[[Case], object],
    *,
    noun: str = "programs",
    verdict: str = "are right",
    where: Callable[[Case], str] | None = None,
    together: bool = False,
) -> None:
    """Call `require` with every case; raise `CheckFailedError` with the first message if any call raised one.

    The error's share is that of the right cases, and of what wrong ones earned nevertheless; with `together` it is 0
    unless all are right. The message is that of the first case that changes what a program computes, or of the first
    wrong case. `noun` names the cases in the message, and `verdict` says what the right ones do. With `where`, an
    answer that raises on a case is wrong about that case only, and `where(case)` begins the sentence about it. If it
    raises on all cases, its own error is raised.
    """
    wrong: list[CheckFailedError] = []
    raised: list[AnswerFailedError] = []
    for case in cases:
        try:
            require(case)
        except CheckFailedError as error:
            wrong.append(error)
        except AnswerFailedError as error:
            if where is None or error.fatal or error.unanswered or len(cases) == 1:
                raise
            raised.append(error)
            wrong.append(CheckFailedError(f"{where(case)}{error.message}"))
    if raised and len(raised) == len(cases):
        raise raised[0]
    if wrong:
        right = len(cases) - len(wrong)
        counted = f" ({right} of {len(cases)} {noun} {verdict}.)" if len(cases) > 1 else ""
        earned = 0.0 if together else (right + sum(error.share for error in wrong)) / len(cases)
        told = next((error for error in wrong if error.changes), wrong[0])
        raise CheckFailedError(f"{told}{counted}", share=earned, changes=told.changes)


def share_of_places(counts: Iterable[tuple[int, range]]) -> float:
    """Return the part of the places that were found, the mean of all kinds of places that are asked for.

    A kind is given by the number found and by the numbers that are right. More than these are worth nothing at all.

    >>> share_of_places([(1, range(2, 3)), (3, range(3, 4)), (0, range(1))])
    0.75
    """
    counted = list(counts)
    if any(found > right[-1] for found, right in counted):
        return 0.0
    return mean(min(found / right[0], 1.0) for found, right in counted if right[0])
