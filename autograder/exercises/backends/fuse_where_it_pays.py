"""Exercise 10.5: divide a program into kernels by a cost model, where fusing can lose.

The host compiles each kernel of an answer for the toy machine and counts; it reads nothing but names and one number.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.programs.timed_rows import Program, Wish, program_time_ns, random_program
from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

Kernels = Sequence[Sequence[str]]
NEAR_BEST = 1.1  # of the least time: an answer's kernels may take so long
NEAR_TIME = 0.05  # by how much a predicted time may differ
LOSES = 1.15  # of the least time, from which on a drawn program shows a mistake
REPEATED = Wish(rows=11, small=0.5, far=0.1, operation_ns=(0.005, 0.02), registers=(6,))
PAIRS = "at most two rows a kernel"  # costs time where every good answer has a kernel of three rows
SPILLED = Wish(rows=11, small=0.0, far=0.7, registers=(4,))
MIXED = Wish(rows=13, small=0.3, far=0.5, operation_ns=(0.002, 0.01))

LOADS = (
    "A kernel loads a value just before the first row that reads it, and not at its begin, so the value needs no "
    "register until then."
)

facts_of = kept(__name__, "facts_of")
loads_first = kept(__name__, "loads_first")
is_settled = kept(__name__, "is_settled")


def drawn(wish: Wish, *losing: str) -> Callable[[Draw], Program]:
    """Return a function that draws a program in which each of these mistakes costs time, and ties of next uses none."""

    def program(draw: Draw) -> Program:
        while True:
            found = random_program(draw, wish)
            losses = facts_of(found)["losses"]
            if all(losses[mistake] > LOSES for mistake in losing) and is_settled(found):
                return found

    return program


def divided(answer: ValueAnswer, program: Program) -> tuple[Kernels, float]:
    """Return the kernels of an answer and the time that it predicts for them, after checking their form."""
    found = answer.ask(dict(program), "kernels", "time")
    if not isinstance(found, dict) or set(found) != {"kernels", "time"}:
        raise CheckFailedError("divide has to return a dict with 'kernels', a list of lists of names, and 'time'.")
    kernels, time = found["kernels"], found["time"]
    if not isinstance(kernels, list) or not all(isinstance(kernel, list) and kernel for kernel in kernels):
        raise CheckFailedError("'kernels' has to be a list of lists of names, none of them empty.")
    names = [row["name"] for row in program["rows"]]
    given = [name for kernel in kernels for name in kernel]
    if given != names:
        at = next((n for n, pair in enumerate(zip(given, names, strict=False)) if pair[0] != pair[1]), len(given))
        raise CheckFailedError(
            f"The kernels name {len(given)} rows; expected each of the {len(names)} rows once, in their order. The "
            f"first difference is at place {at + 1}."
        )
    if type(time) not in (int, float) or not math.isfinite(time) or time <= 0:
        raise CheckFailedError(f"'time' is {time!r:.40}; expected nanoseconds, a number above 0.")
    return kernels, float(time)


def digest(kernels: Kernels) -> str:
    """Return a key of the places where a program is cut."""
    return hashlib.sha256(repr([len(kernel) for kernel in kernels]).encode()).hexdigest()[:12]


def require_near_best(answer: ValueAnswer, program: Program) -> None:
    """Raise `CheckFailedError` unless the kernels take about the least time."""
    kernels, _ = divided(answer, program)
    facts, time_ns = facts_of(program), program_time_ns(program, kernels)
    if time_ns > NEAR_BEST * facts["best"]:
        found, unknown = digest(kernels), "Compare the time of every run of rows before you cut."
        why = facts["wrong"].get(found) or (LOADS if found == loads_first(program) else unknown)
        raise CheckFailedError(
            f"{_described(program)} {len(kernels)} kernels take {time_ns:,.0f} ns; {facts['best']:,.0f} are possible, "
            f"and {NEAR_BEST:.0%} of that is near enough. {why}"
        )


def require_time(answer: ValueAnswer, program: Program) -> None:
    """Raise `CheckFailedError` unless the predicted time is about that of the machine."""
    kernels, predicted = divided(answer, program)
    if max(map(len, kernels)) < 3:
        raise CheckFailedError(
            f"{_described(program)} no kernel has three rows, so the time of fused rows is not seen. Fuse first."
        )
    time_ns = program_time_ns(program, kernels)
    if abs(predicted / time_ns - 1) > NEAR_TIME:
        raise CheckFailedError(
            f"{_described(program)} 'time' is {predicted:,.0f}; the machine takes {time_ns:,.0f} ns for these "
            f"{len(kernels)} kernels. {_missing(program, kernels, predicted)}"
        )


def _missing(program: Program, kernels: Kernels, predicted: float) -> str:
    """Return a sentence about the part of the time that a prediction lacks, or about loads in another place."""
    if abs(predicted / program_time_ns(program, kernels, loads_first=True) - 1) < 0.01:
        return LOADS
    for price, says in (
        ("scratch", "Spills and reloads are missing: a kernel has few registers."),
        ("operation", "Operations are missing: each row is computed for every element of the kernel's largest value."),
        ("launch", "Launches are missing: one for each kernel."),
        ("byte", "Bytes are missing: what a kernel reads from outside, and what others read of it."),
    ):
        without = {**program, "prices": {**program["prices"], price: 0.0}}
        if abs(predicted / (program_time_ns(without, kernels) or 1.0) - 1) < 0.01:
            return says
    return (
        "Count launches, bytes, operations, spills and reloads, and put them beside the prices. A load stands just "
        "before the first row that reads its value, which needs a register from there on."
    )


def _described(program: Mapping[str, Any]) -> str:
    return f"In a program of {len(program['rows'])} rows, with {program['registers']} registers:"


Require = Callable[[ValueAnswer, Program], None]


def of_each(require: Require, *programs: Callable[[Draw], Program]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that demands this of each program; each has an equal share."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among([program(draw) for program in programs], lambda program: require(answer, program))

    return run


EXERCISE = Exercise(
    title="Fuse where it pays",
    kind=Kind.VALUE,
    entry_point="divide",
    points=10,
    masked=("course_lib.backends",),  # its allocator would choose registers and spills
    wall_s=60,
    hints=(
        "Two questions: what does one kernel cost, and where do you cut? Write the cost of the rows from `first` to "
        "`last` first, and compare it with the notebook's table.",
        "The best kernels of the first k rows: for each place of the last cut, the best of the rows before it and the "
        "cost of one kernel behind it. Keep the least, for k = 1, 2, 3 and so on.",
        "For spills go through the rows with a set of names in registers. What nobody in the kernel reads later leaves "
        "it. If it is full, what is read last leaves it, and costs a spill, and a reload when it is read.",
    ),
    checks=(
        Check(
            "the time of kernels",
            "time",
            2,
            of_each(require_time, *[drawn(each, "all", PAIRS) for each in (REPEATED, SPILLED)] * 2),
        ),
        Check(
            "kernels near the least time",
            "kernels",
            3,
            of_each(
                require_near_best,
                drawn(REPEATED, "all", "none"),
                drawn(SPILLED, "all", "none"),
                drawn(MIXED, "all", "none"),
            ),
        ),
    ),
)
