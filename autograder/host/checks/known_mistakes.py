"""Find the known mistakes of an answer, so that each mistake costs the points of one check and no other.

A formula with options describes the right computation and its common mistakes. One call tells which options the answer
has. The check that counts a mistake fails with its sentence; every other check expects the formula with this mistake.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.differences import same


@dataclass(frozen=True)
class Mistake:
    """One common mistake: what it changes in the formula, a message, and the category of the check that counts it."""

    options: Mapping[str, Any]
    says: str  # to the student: what was seen, what was expected, what to try
    counted: str


def mistakes_made(
    gives: Callable[[Mapping[str, Any]], bool], mistakes: Sequence[Mistake], *, most: int = 2
) -> tuple[Mistake, ...] | None:
    """Return the fewest mistakes whose options give the answer's result; None if no `most` of them do.

    `gives(options)` tells whether the formula with these options gives what the answer gave. An empty tuple means that
    the answer is right.
    """
    for count in range(most + 1):
        for chosen in itertools.combinations(mistakes, count):
            keys = [key for mistake in chosen for key in mistake.options]
            if len(set(keys)) == len(keys) and gives(options_of(chosen)):
                return chosen
    return None


def options_of(mistakes: Iterable[Mistake]) -> dict[str, Any]:
    """Return the options of all `mistakes` together."""
    return {key: value for mistake in mistakes for key, value in mistake.options.items()}


def require_none_of(category: str, mistakes: Iterable[Mistake]) -> None:
    """Raise `CheckFailedError` with the sentence of the first mistake that the check of `category` counts."""
    for mistake in mistakes:
        if mistake.counted == category:
            raise CheckFailedError(mistake.says)


def explanations(
    found: Sequence[Any], right: Sequence[Any], wrong: Sequence[Mapping[str, Sequence[Any]]]
) -> Mapping[str, str]:
    """Return the sentences of the mistakes that explain all values of an answer, each with the check that counts it.

    `wrong` holds for each question a mapping from a mistake's sentence to the value that it gives and that check. Where
    a mistake gives what is right, it may be left out.
    """
    checks = {says: value[1] for each in wrong for says, value in each.items()}
    return {
        says: counted
        for says, counted in checks.items()
        if all(same(*pair) for pair in zip(found, _given(says, right, wrong), strict=True))
    }


def _given(says: str, right: Sequence[Any], wrong: Sequence[Mapping[str, Sequence[Any]]]) -> list[Any]:
    return [each.get(says, (expected,))[0] for expected, each in zip(right, wrong, strict=True)]
