"""Programs of rows that read earlier rows, and the time that the toy machine takes for them in given kernels.

A row computes one value from one to three others. Kernels are runs of consecutive rows. The compiler of the toy machine
allocates the registers of each kernel, so spills are counted and not estimated.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.exercises.questions import Question
from autograder.host.draw import Draw
from course_lib.backends.toy.registers import allocate
from course_lib.machine import Access, Instruction, Register, Unit

Program = Mapping[str, Any]
"""`rows`, `inputs` and `outputs`, `sizes` in elements, `prices` in nanoseconds, and `registers`."""
ITEM_BYTES = 4
OPERATIONS = {1: ("neg", "exp", "tanh", "abs"), 2: ("add", "mul", "sub", "max"), 3: ("select",)}


@dataclass(frozen=True)
class Wish:
    """What a drawn program is like."""

    rows: int = 10
    small: float = 0.2  # part of the rows that have as many elements as a row of a matrix
    far: float = 0.3  # part of the reads that go far back
    launch_ns: tuple[int, ...] = (200, 600, 1500)
    operation_ns: tuple[float, ...] = (0.0005, 0.002)
    scratch_ns: tuple[float, ...] = (0.01, 0.03)
    registers: tuple[int, ...] = (4, 5)


def random_program(draw: Draw, wish: Wish) -> Question:
    """Draw a program whose values all reach an output."""
    columns = draw.choice((256, 512, 768))
    large = columns * draw.choice((128, 256, 512))
    inputs = [f"x{number}" for number in range(3)]
    sizes = {"x0": large, "x1": large, "x2": columns}
    rows: list[Question] = []
    for number in sorted(draw.sample(range(100), wish.rows)):
        small = draw.integer(0, 99) < 100 * wish.small
        values = [name for name in sizes if not small or sizes[name] == columns]
        reads = _reads(draw, values, wish.far)
        name = f"t{number}"
        sizes[name] = max(sizes[read] for read in reads)
        rows.append({"name": name, "op": draw.choice(OPERATIONS[len(reads)]), "reads": reads})
    read = {name for row in rows for name in row["reads"]}
    prices = {"launch": draw.choice(wish.launch_ns), "byte": 0.001}
    prices |= {"operation": draw.choice(wish.operation_ns), "scratch": draw.choice(wish.scratch_ns)}
    return {
        "rows": rows,
        "inputs": inputs,
        "outputs": [row["name"] for row in rows if row["name"] not in read],
        "sizes": sizes,
        "prices": prices,
        "registers": draw.choice(wish.registers),
    }


def _reads(draw: Draw, values: Sequence[str], far: float) -> list[str]:
    count = draw.choice((1, 2, 2, 2, 3))
    near = values[-3:]
    found = [draw.choice(values if draw.integer(0, 99) < 100 * far else near) for _ in range(count)]
    return list(dict.fromkeys(found))


def kernel_work(program: Program, first: int, last: int, *, loads_first: bool = False) -> dict[str, float]:
    """Return what one kernel of the rows `first` to `last - 1` does, under the names of the prices.

    It has one launch; loads each value from outside once; stores what later rows or the caller read; and computes each
    row for every element of its largest value. What finds no register is spilled to scratch memory and reloaded. A load
    stands before the first row that reads its value; with `loads_first`, a known mistake, all stand at the begin.
    """
    rows, sizes = program["rows"][first:last], program["sizes"]
    later = {name for row in program["rows"][last:] for name in row["reads"]} | set(program["outputs"])
    steps = allocate(_instructions(rows, later, loads_first), program["registers"])
    space = max(sizes[row["name"]] for row in rows)
    return {
        "launch": 1,
        "byte": ITEM_BYTES * sum(sizes[access.buffer] for step in steps for access in step.memory),
        "operation": len(rows) * space,
        "scratch": space * sum(step.unit is Unit.SCRATCH for step in steps),
    }


def time_ns(program: Program, work: Mapping[str, float]) -> float:
    """Return the time of this work by the prices of a program."""
    total: float = sum(program["prices"][name] * count for name, count in work.items())
    return total


def _instructions(
    rows: Sequence[Mapping[str, Any]], later: Collection[str], loads_first: bool = False
) -> list[Instruction]:
    """Return the instructions of a kernel: a load before the first use, the row, and a store of what is read later."""
    register: dict[str, Register] = {}
    steps: list[Instruction] = []
    made = {row["name"] for row in rows}
    outside = [name for row in rows for name in row["reads"] if name not in made]
    for number, row in enumerate(rows):
        for name in [*outside, *row["reads"]] if loads_first and number == 0 else row["reads"]:
            if name not in register:
                register[name] = Register(len(register))
                steps.append(Instruction("load", register[name], memory=(_whole(name),)))
        operands = tuple(register[name] for name in row["reads"])
        register[row["name"]] = Register(len(register))
        steps.append(Instruction(row["op"], register[row["name"]], operands))
        if row["name"] in later:
            steps.append(Instruction("store", operands=(register[row["name"]],), memory=(_whole(row["name"]),)))
    return steps


def _whole(name: str) -> Access:
    return Access(name, (1,), (1,))


def program_time_ns(program: Program, kernels: Sequence[Sequence[str]], *, loads_first: bool = False) -> float:
    """Return the time of a program whose rows are divided into these kernels, in order."""
    total, first = 0.0, 0
    for kernel in kernels:
        total += time_ns(program, kernel_work(program, first, first + len(kernel), loads_first=loads_first))
        first += len(kernel)
    return total
