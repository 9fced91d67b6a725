"""Checks on several cases: each case is worth an equal share of the check's points."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from autograder.host.exercise import CheckFailedError
from autograder.host.session import AnswerFailedError

Case = TypeVar("Case")


def share_among(
    cases: Sequence[Case],
    require: Callable[[Case], object],
    *,
    noun: str = "programs",
    where: Callable[[Case], str] | None = None,
    together: bool = False,
) -> None:
    """Call `require` with every case; raise `CheckFailedError` with the first message if any call raised one.

    The error's share is that of the right cases; with `together` it is 0 unless all are right. `noun` names the cases
    in the message. With `where`, an answer that raises on a case is wrong about that case only, and `where(case)`
    begins the sentence about it. If it raises on all cases, its own error is raised.
    """
    wrong: list[str] = []
    raised: list[AnswerFailedError] = []
    for case in cases:
        try:
            require(case)
        except CheckFailedError as error:
            wrong.append(str(error))
        except AnswerFailedError as error:
            if where is None or error.fatal or error.unanswered or len(cases) == 1:
                raise
            raised.append(error)
            wrong.append(f"{where(case)}{error.message}")
    if raised and len(raised) == len(cases):
        raise raised[0]
    if wrong:
        right = len(cases) - len(wrong)
        counted = f" ({right} of {len(cases)} {noun} are right.)" if len(cases) > 1 else ""
        raise CheckFailedError(wrong[0] + counted, share=0.0 if together else right / len(cases))
