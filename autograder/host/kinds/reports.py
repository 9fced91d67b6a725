"""Read what the host's text reports from a worker; anything of another form is a malformed answer."""

from typing import Any

from autograder.host.channel import MalformedAnswerError

Report = dict[str, Any]
"""What the host's text reports of an answer, as plain data."""

MOST = 10**9
"""A larger count is none: nothing of an answer has so many."""


def entries(found: Any) -> Report:
    """Return a dict of a report; raise `MalformedAnswerError` for anything else."""
    if not isinstance(found, dict):
        raise MalformedAnswerError
    return found


def numbers(found: Any, count: int | None = None) -> list[float]:
    """Return a list of numbers of a report; raise `MalformedAnswerError` for anything else."""
    return items(found, (int, float), count)


def counts(found: Any, count: int | None = None) -> list[int]:
    """Return a list of whole numbers that count something; raise `MalformedAnswerError` for anything else.

    >>> counts([2, 0])
    [2, 0]
    """
    if any(not 0 <= each <= MOST for each in items(found, (int,), count)):
        raise MalformedAnswerError
    return list(found)


def items(found: Any, types: tuple[type, ...], count: int | None = None) -> list[Any]:
    """Return a list of a report whose items have exactly these types; raise `MalformedAnswerError` otherwise."""
    if not isinstance(found, list) or any(type(each) not in types for each in found):
        raise MalformedAnswerError
    if count is not None and len(found) != count:
        raise MalformedAnswerError
    return found
