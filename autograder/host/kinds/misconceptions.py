"""Name a known misconception where it explains a wrong answer.

A misconception is a wrong formula and a sentence. If an answer fails a check and computes the same as the wrong
formula, the sentence is the message. So the student reads the cause, not only that the numbers differ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, Reply, require_outputs
from autograder.host.kinds.differences import same


@dataclass(frozen=True)
class Misconception:
    """A common wrong formula, and a message about it."""

    formula: Callable[..., Any]  # takes the same arguments as the reference
    says: str  # to the student: what was seen, what was expected, what to try


def explained(reply: Reply, case: Case, names: Sequence[str], misconceptions: Sequence[Misconception]) -> str:
    """Return the sentence of the first misconception that gives the same reply; empty if there is none."""
    return next((m.says for m in misconceptions if gives(m, reply, case, names)), "")


def gives(misconception: Misconception, reply: Reply, case: Case, names: Sequence[str]) -> bool:
    """Tell whether the wrong formula gives the same reply."""
    try:
        require_outputs(reply, case, misconception.formula, names)
    except (CheckFailedError, RuntimeError, TypeError):  # a wrong formula may not even run on every case
        return False
    return True


def wrong_values(question: Any, misconceptions: Sequence[Misconception]) -> list[list[Any]]:
    """Return what each misconception answers to a question that is plain data, and its sentence.

    A wrong formula that has no answer to the question is left out.
    """
    found = []
    for misconception in misconceptions:
        try:
            found.append([misconception.formula(question), misconception.says])
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
    return found


def named_mistake(found: Any, wrong: Sequence[Sequence[Any]]) -> str:
    """Return the sentence of the first of the `wrong_values` that equals the answer; empty if there is none."""
    return next((says for value, says in wrong if same(value, found)), "")
