"""Exercise 15.3: find in two recordings of a program what would go wrong if it were captured and replayed."""

from collections.abc import Callable
from typing import Any

from autograder.exercises.programs.recorded_calls import (
    Row,
    Statement,
    Tape,
    created,
    host_read,
    in_place,
    own_generator,
    program,
    rebound,
    shapes,
    stale,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer

SAYS = {
    "host read": "The host waits for a value there: host_read is True.",
    "random state": "It draws from a generator of its own: own_generator is True.",
    "stale number": "A Python number there differs between the calls; a replay keeps the first.",
    "two shapes": "The shapes differ between the calls; a graph has one.",
    "rebound input": "It reads memory from outside that differs between the calls; a replay reads the first.",
    "first call only": "Only the first call runs it, and a replay would run it each time.",
}
FINE = (
    "Results of the call itself may lie anywhere, state may be created by the first call, and a loop runs a line often."
)


def finds(*programs: tuple[Statement, ...]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the violations of each program are found, and nothing else."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for violations in draw.sample(programs, len(programs)):
            require_found(answer, program(draw, *violations))

    return run


def require_found(answer: ValueAnswer, tape: Tape) -> None:
    """Raise `CheckFailedError` unless exactly the violations of one program are reported."""
    found = answer.ask({"first": tape.first, "second": tape.second})
    rows = _rows(found)
    if missed := sorted(tape.violations - rows):
        line, category = missed[0]
        raise CheckFailedError(f"Line {line} belongs to {category!r}, and was not reported. {SAYS[category]}")
    if more := sorted(rows - tape.violations):
        line, category = more[0]
        raise CheckFailedError(f"Line {line} was reported as {category!r}, and it is fine. {FINE}")


def _rows(found: Any) -> set[Row]:
    """Return the rows of an answer; raises `CheckFailedError` if it is no list of rows."""
    rows = set()
    for row in found if isinstance(found, list) else [found]:
        if not (isinstance(row, list) and [type(each) for each in row] == [int, str] and row[1] in SAYS):
            raise CheckFailedError(
                f"{repr(row)[:80]} is no row. Return a list of rows [line, category], such as [4, 'host read']; the "
                f"categories are {', '.join(SAYS)}."
            )
        rows.add((row[0], row[1]))
    return rows


EXERCISE = Exercise(
    title="Find what breaks a replay",
    kind=Kind.VALUE,
    entry_point="find_violations",
    points=12,
    wall_s=20,
    hints=(
        "Two categories stand in the launch itself. For the others, compare each launch with that of the other call: "
        "the same line, and the same place among the launches of this line.",
        "Walk through a call and keep all that was written so far: what a launch reads besides comes from outside.",
        "Memory that a line of the first call alone wrote is state; the second call may read it from outside.",
    ),
    checks=(
        Check("host reads and generators", "the launch itself", 1.5, finds((host_read,), (own_generator, host_read))),
        Check("numbers and shapes", "between two calls", 1.5, finds((stale,), (shapes, stale))),
        Check("rebound inputs", "memory", 1.5, finds((rebound,), (rebound, in_place))),
        Check("work of the first call", "state", 1.5, finds((created,), (created, in_place))),
    ),
)
