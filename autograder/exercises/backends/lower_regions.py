"""Exercise 10.4: write the instructions of a fused region for a machine with few registers.

The host reads an answer's rows as data, assembles and runs them itself, and counts what they cost.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.exercises.programs.fused_regions import (
    OPERATORS,
    ROWWISE,
    UNARY,
    Wish,
    arguments_of,
    normalised_rows,
    random_region,
    results_of,
)
from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among
from course_lib.errors import BackendError
from course_lib.machine import Machine, Program, Region, assemble

Rows = list[list[Any]]
Drawn = Callable[[Draw], Question]
MOST_ROWS, LONGEST_ROW, MOST_CHARACTERS, LARGEST = 400, 6, 40, 2**53
CLOSE = 1e-9  # relative, in float64: other orders of a sum pass
FULL, NOTHING = 1.08, 1.5  # accesses over the fewest known: all points up to here, none from here on
TIES = 2
"""Accesses above the fewest known that cost nothing either: where next uses tie, a right choice may lose so many."""
THROUGH_MEMORY = 2.0  # accesses over the fewest known, from which on values do not stay in registers
CHOOSE = (
    "A value that is read again soon stays in its register; one whose next use is the furthest away leaves it. A value "
    "that memory holds already is not spilled."
)
WRONG_READINGS: Sequence[tuple[str, dict[str, Callable[..., torch.Tensor]]]] = (
    ("mean.row is the sum divided by the number of columns.", {"mean_row": OPERATORS["sum.row"]}),
    (
        "a row of the machine runs along the last dimension; the mean was divided by another size.",
        {"mean_row": lambda a: OPERATORS["sum.row"](a) / a.shape[0]},
    ),
    ("relu was left out: it is the maximum with 0.", {"relu": lambda a: a}),
    ("relu is the maximum with 0, not the minimum.", {"relu": lambda a: a.clamp(max=0)}),
    ("the operands of sub changed places.", {"sub": lambda a, b: b - a}),
)
"""Sentences about operators that were read wrongly, and what they then compute."""

fewest_accesses = kept(__name__, "fewest_accesses")


def assembled(answer: ValueAnswer, region: Region) -> tuple[Rows, Program]:
    """Return the answer's rows for a region, and their program, after checking each row."""
    rows = _plain(answer.ask(dict(region)))
    try:
        program = assemble(region, rows, dtype=torch.float64)
    except BackendError as error:
        raise CheckFailedError(str(error)) from None
    for row in rows:
        if row[0] in ("load", "store"):
            _require_strides(region, row)
    for name in region["outputs"]:
        if not any(row[0] == "store" and row[1] == name for row in rows):
            raise CheckFailedError(f"Nothing stores the output {name}. The region has {', '.join(region['outputs'])}.")
    return rows, program


def _plain(found: Any) -> Rows:
    """Return the rows if they are few lists of numbers, short texts and strides."""
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise CheckFailedError(
            "lower_region did not return a list of lists; a row is a list such as ['add', 'r2', 'r0', 'r1']."
        )
    if len(found) > MOST_ROWS or any(len(row) > LONGEST_ROW for row in found):
        raise CheckFailedError(
            f"lower_region returned {len(found)} rows; expected at most {MOST_ROWS} of {LONGEST_ROW} entries."
        )
    if not all(_entry(value) for row in found for value in row):
        raise CheckFailedError("A row holds something else than names, numbers below 2**53, and lists of strides.")
    return found


def _entry(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= LONGEST_ROW and all(type(step) is int and abs(step) <= LARGEST for step in value)
    if isinstance(value, str):
        return len(value) <= MOST_CHARACTERS
    return type(value) in (int, float) and math.isfinite(value) and abs(value) <= LARGEST


def _require_strides(region: Region, row: list[Any]) -> None:
    """Require that an access reads or writes each element at its place in the buffer."""
    loads = row[0] == "load"
    name, found = (row[2], row[3]) if loads else (row[1], row[2])
    shape, strides = region["inputs" if loads else "outputs"][name]
    space = region["space"]
    right = torch.empty_strided(shape, strides).expand(space).stride()
    if any(size > 1 and step != want for size, step, want in zip(space, found, right, strict=True)):
        why = "Dimensions are compared from the right; one that the buffer lacks, or has with size 1, has stride 0."
        if shape == space:
            why = "Take its own strides, which say where its elements lie in memory."
        raise CheckFailedError(
            f"The {row[0]} of {name} has strides {found}. {name} has shape {shape} and strides {strides}, and the "
            f"space is {space}. {why}"
        )


def require_values(answer: ValueAnswer, region: Region, draw: Draw) -> tuple[Rows, Program]:
    """Return rows and program, after checking that the machine computes the region with them."""
    rows, program = assembled(answer, region)
    arguments = arguments_of(region, draw)
    try:
        found = Machine(region["registers"]).run(program, arguments)
    except BackendError as error:
        raise CheckFailedError(str(error)) from None
    right = results_of(region, arguments)
    if not all(_close(*pair) for pair in zip(found, right, strict=True)):
        raise CheckFailedError(_difference(region, arguments, found, right))
    return rows, program


def _close(found: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.allclose(found.double(), right, rtol=CLOSE, atol=CLOSE)


def _difference(
    region: Region, arguments: list[torch.Tensor], found: Sequence[torch.Tensor], right: Sequence[torch.Tensor]
) -> str:
    for says, instead in WRONG_READINGS:
        if all(_close(*pair) for pair in zip(found, results_of(region, arguments, **instead), strict=True)):
            return f"The program computes something else: {says}"
    outputs = list(region["outputs"])
    wrong = next(at for at, pair in enumerate(zip(found, right, strict=True)) if not _close(*pair))
    return (
        f"The output {outputs[wrong]} of {len(region['nodes'])} nodes differs by up to "
        f"{_apart(found[wrong], right[wrong])} from what the nodes compute. Follow the registers: was "
        "one overwritten whose value is still read, was a slot "
        "used for two values, or an operand taken from a wrong register?"
    )


def _apart(found: torch.Tensor, right: torch.Tensor) -> str:
    return f"{(found.double() - right).abs().max().item():.3g}"


def accesses(program: Program) -> int:
    """Return how often a program reads or writes memory: loads, stores, spills and reloads."""
    counts = program.counts
    return counts.loads + counts.stores + counts.spills + counts.reloads


def require_registers(answer: ValueAnswer, region: Region, draw: Draw) -> None:
    """Require right values, and that not every value goes through memory."""
    _, program = require_values(answer, region, draw)
    found, best = accesses(program), fewest_accesses(region)
    if found > THROUGH_MEMORY * best:
        raise CheckFailedError(
            f"{found} loads, stores, spills and reloads for {len(region['nodes'])} nodes; {best} are enough. Values "
            "stay in registers while one is free; only then is one spilled."
        )


def require_few_accesses(answer: ValueAnswer, region: Region, draw: Draw) -> None:
    """Require right values with few accesses; between the two limits a part of the points is earned."""
    rows, program = require_values(answer, region, draw)
    found, best = accesses(program), fewest_accesses(region)
    enough = max(FULL * best, best + TIES)
    share = max(0.0, min(1.0, (NOTHING * best - found) / (NOTHING * best - enough)))
    if share < 1:
        spilled = spilled_inputs(rows)
        why = _spilled(spilled) if spilled else CHOOSE
        raise CheckFailedError(
            f"{found} loads, stores, spills and reloads for {len(region['nodes'])} nodes with {region['registers']} "
            f"registers; {best} are enough. {why}",
            share=round(share, 3),
        )


def require_no_spilled_input(answer: ValueAnswer, region: Region, draw: Draw) -> None:
    """Require right values in registers, without an input in scratch memory."""
    rows, _ = require_values(answer, region, draw)
    require_registers(answer, region, draw)
    spilled = spilled_inputs(rows)
    if spilled:
        raise CheckFailedError(_spilled(spilled))


def _spilled(names: list[str]) -> str:
    return f"The input {names[0]} was spilled. It is in memory already: load it again, which costs one access, not two."


def spilled_inputs(rows: Rows) -> list[str]:
    """Return the inputs that were spilled as they are."""
    holds: dict[str, str] = {}
    found = []
    for row in rows:
        if row[0] == "spill" and row[2] in holds:
            found.append(holds[row[2]])
        elif row[0] == "load":
            holds[row[1]] = row[2]
        elif row[0] not in ("spill", "store"):
            holds.pop(row[1], None)
    return found


Run = Callable[[ValueAnswer, Draw], None]


def lowers(*regions: Drawn, require: Callable[..., object] = require_values, together: bool = False) -> Run:
    """Return a check that each of the regions is lowered as `require` says; all or nothing if `together`."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(regions, lambda region: require(answer, region(draw), draw), noun="regions", together=together)

    return run


def drawn(wish: Wish, *, tight: bool = False) -> Drawn:
    """Return a function that draws such a region; a `tight` one does not fit into its registers."""

    def region(draw: Draw) -> Question:
        while True:
            found = random_region(draw, wish)
            least = len({read for node in found["nodes"] for read in node[2] if read in found["inputs"]})
            if not tight or fewest_accesses(found) >= least + len(found["outputs"]) + 3:
                return found

    return region


LOWERED = Wish(6, operators=(*UNARY, "add", "sub", *ROWWISE, "relu", "mean.row"), must=("relu", "mean.row"))
REPEATED = Wish(8, inputs=4, layouts=("whole", "columns", "rows", "transposed"))

EXERCISE = Exercise(
    title="Lower fused regions to the toy machine",
    kind=Kind.VALUE,
    entry_point="lower_region",
    points=18,
    masked=("course_lib.backends",),  # its allocator would choose registers and spills
    wall_s=30,
    hints=(
        "Visit the nodes in order. At each node: which operands are in no register? Which register gets the result? "
        "Which values does no later node read?",
        "Keep a dict from values to registers, and a list of free registers. Free the registers of values without a "
        "next use before the result takes one. Loads come at the first use.",
        "If no register is free, take the one of max(values, key=next use). A load must leave the operands of this "
        "node in their registers; the result may take the register of one, spilled first. Spill it "
        "unless it is an input or has a slot already. An operand with a slot is reloaded; an input is loaded.",
    ),
    checks=(
        Check("values of small regions", "values", 2, lowers(*[drawn(Wish(5))] * 3)),
        Check(
            "relu and mean.row",
            "operators",
            1,
            lowers(*[drawn(LOWERED)] * 3, lambda draw: normalised_rows(draw, 8), together=True),
        ),
        Check("inputs that are repeated", "broadcasts", 2, lowers(*[drawn(REPEATED)] * 3, together=True)),
        Check(
            "four and five registers",
            "registers",
            1.5,
            lowers(
                *[drawn(Wish(14, 4, 6, 4, again=0.3), tight=True)] * 2,
                drawn(Wish(18, 5, 7, 4, again=0.3), tight=True),
                require=require_registers,
            ),
        ),
        Check(
            "few accesses to memory",
            "accesses",
            2,
            lowers(
                *[drawn(Wish(20, 5, 7, 4, again=0.35), tight=True)] * 2,
                *[drawn(Wish(24, 6, 8, 5, again=0.35), tight=True)] * 2,
                require=require_few_accesses,
            ),
        ),
        Check(
            "inputs are loaded again, not spilled",
            "spilled inputs",
            2,
            lowers(
                *[drawn(Wish(18, 4, 5, 5, again=0.5), tight=True)] * 2,
                drawn(Wish(24, 5, 6, 5, again=0.5), tight=True),
                require=require_no_spilled_input,
                together=True,
            ),
        ),
    ),
)
