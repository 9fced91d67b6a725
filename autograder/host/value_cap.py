"""The limit for passes that change what a program computes, and for operators that are not what they declare.

A missed fusion or a wrong count costs the share of its check. A wrong result is worse: whoever runs the pass gets
wrong numbers without a word. So it limits the whole exercise, whichever check finds it. So does a pass that ends its
process, or uses all its time, before its results were compared: else it would earn more than where they were. An
operator that declares another write, shape or stride than it has makes a compiler wrong in the same silent way.
"""

from collections.abc import Iterable

from autograder.host.exercise import Kind
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus

MOST_SHARE = 0.6  # of the assessed points of the exercise
SENTENCE = "After your pass a program computes something else than it should"
ENDED = "Your pass ended before all its results were compared"
LIES = "Your operator is not what it declares"
CONDITION = f"Condition for more than {MOST_SHARE:.0%}: every program computes what it should.".replace("%", " %")
HONEST = f"Condition for more than {MOST_SHARE:.0%}: every operator is what it declares.".replace("%", " %")
PASSES = frozenset({Kind.GRAPH, Kind.SCHEDULE})  # kinds whose answers change programs

REFUSALS = frozenset(
    {"evaluation mode", "look-alikes", "random numbers", "refusals", "side effects", "training mode", "writes"}
)
"""Categories of checks of what a pass must leave as it is: look-alikes, escaping values, writes, draws, modes."""

VALUES_STAY = REFUSALS | frozenset(
    {
        "BatchNorm",
        "LayerNorm",
        "arguments",
        "composition",
        "configuration",
        "constants",
        "counted cost",
        "dead code",
        "dropout",
        "eps",
        "equal calls",
        "gradients",
        "idempotence",
        "literals",
        "modules",
        "names",
        "navigation",
        "no bias",
        "odd sizes",
        "pattern",
        "patterns",
        "renamed models",
        "several layers",
        "several places",
        "spellings",
        "tied weights",
        "tracing",
        "unseen variant",
        "values",
    }
)
"""Categories of checks in which each program must compute what it computed before the pass."""

OPERATORS = frozenset({"declared form", "declared writes"})
"""Categories of checks that hold what an operator declares against what it does, in exercises of any kind."""
LIMITING = VALUES_STAY | OPERATORS


def most_points(max_points: float) -> float:
    """Return the most that an answer can earn if it changes what a program computes.

    >>> most_points(12)
    7.2
    """
    return round(MOST_SHARE * max_points, 6)


def is_limited(kind: Kind, categories: Iterable[str]) -> bool:
    """Tell whether an exercise of this kind, with checks of these categories, has the limit."""
    found = frozenset(categories)
    return bool(found & OPERATORS) or (kind in PASSES and bool(found & VALUES_STAY))


def condition(record: ExerciseRecord) -> str:
    """Return the sentence that tells whether the limit's condition holds; empty where it decides nothing."""
    if record.cap or not record.points or record.status is not ExerciseStatus.GRADED:
        return record.cap
    if not is_limited(Kind(record.kind), (check.category for check in record.checks)):
        return ""
    of_operators = not OPERATORS.isdisjoint(check.category for check in record.checks)
    wanted, where = (HONEST, "calls") if of_operators else (CONDITION, "programs")
    if any(check.hidden for check in record.checks):
        return f"{wanted} It holds."
    return f"{wanted} It holds in the {where} of the checks below, and is open for those that grading adds."


def not_compared(kind: Kind, checks: Iterable[CheckRecord]) -> list[CheckRecord]:
    """Return the checks in which the results of a pass were not compared, since the answer ended in one of them."""
    return [c for c in checks if kind in PASSES and c.status is CheckStatus.ERROR and c.category in VALUES_STAY]


def cap_note(changing: Iterable[CheckRecord], ended: Iterable[CheckRecord] = ()) -> str:
    """Return the sentence about the limit for checks that found a changed program, or that an answer ended.

    It is empty if there are neither.
    """
    found = list(changing)
    lies = bool(found) and all(check.category in OPERATORS for check in found)
    return _note(LIES if lies else SENTENCE, found) or _note(ENDED, ended)


def _note(sentence: str, checks: Iterable[CheckRecord]) -> str:
    found = dict.fromkeys(f"a hidden check of {c.category}" if c.hidden else f"the check `{c.name}`" for c in checks)
    if not found:
        return ""
    first, *others = found
    more = f", and {len(others)} more" if others else ""
    return f"{sentence} ({first}{more}). Such an answer earns at most {MOST_SHARE:.0%} of the points.".replace(
        "%", " %"
    )
