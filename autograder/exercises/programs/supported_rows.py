"""Random graphs for questions about partitions: rows of which a target takes some, with drawn names and sizes.

A row is a dict: `name`, `supported`, `bytes` of its result, `inputs` (names of earlier rows; inputs of the program are
no rows), and `picks`, which is True for a row that only takes one of several results of its input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.host.draw import Draw

Row = Mapping[str, Any]
SIZES = (64, 128, 256, 512, 1024)


@dataclass
class Rows:
    """A graph that is written row by row."""

    draw: Draw
    rows: list[Row] = field(default_factory=list)

    def add(self, supported: bool, *inputs: str, size: int | None = None, picks: bool = False) -> str:
        """Add a row and return its name."""
        name = f"n{len(self.rows)}"
        made = self.draw.choice(SIZES) if size is None else size
        self.rows.append({"name": name, "supported": supported, "bytes": made, "inputs": list(inputs), "picks": picks})
        return name

    def renamed(self) -> list[Row]:
        """Return the rows with random names, from which nothing can be read."""
        names = [row["name"] for row in self.rows]
        new = dict(zip(names, self.draw.sample([f"v{i}" for i in range(len(names))], len(names)), strict=True))
        return [{**row, "name": new[row["name"]], "inputs": [new[n] for n in row["inputs"]]} for row in self.rows]


SMALL: Mapping[str, Sequence[tuple[bool, tuple[int, ...]]]] = {
    "a chain with one row that the target does not take": (
        (True, ()), (True, (0,)), (False, (1,)), (True, (2,)), (True, (3,)),
    ),
    "two ways from one row, one of them through a row that the target does not take": (
        (True, ()), (False, (0,)), (True, (0,)), (True, (1, 2)), (True, (3,)),
    ),
    "two branches that never meet": (
        (True, ()), (True, ()), (False, (0,)), (True, (2,)), (True, (1,)),
    ),
    "two rows that wait for each other's branch": (
        (True, ()), (True, ()), (False, (0,)), (False, (1,)), (True, (1, 2)), (True, (0, 3)),
    ),
    "a long way round": (
        (True, ()), (False, (0,)), (True, (1,)), (False, (2,)), (True, (0, 3)), (True, (0,)),
    ),
}  # fmt: skip
"""Graphs of five or six rows by what is special in them; a row is whether it is supported, and the rows it reads."""


def small(draw: Draw, name: str) -> list[Row]:
    """Return one of the small graphs, with drawn names and sizes."""
    made = Rows(draw)
    for supported, inputs in SMALL[name]:
        made.add(supported, *(f"n{i}" for i in inputs))
    return made.renamed()


@dataclass(frozen=True)
class Shape:
    """Settings of a random graph: lanes that run side by side, each row reading the row before it in its lane."""

    rows: int
    lanes: int = 2
    outside: float = 0.25  # how likely a row is not supported
    skips: float = 0.3  # how likely a row also reads an older row of any lane
    ends: float = 0.2  # how likely a row is followed by one that nobody reads, a result of the program
    early: int = 0  # chains that start from the program's inputs, at its begin, and are read much later
    several: float = 0.0  # how likely a row has several results, which two more rows pick
    begins_outside: bool = False  # the target does not take the first row of every second lane


def random_rows(draw: Draw, shape: Shape) -> list[Row]:
    """Return a random graph."""
    made = Rows(draw)
    waiting = [_chain(made, draw) for _ in range(shape.early)]
    lanes = [made.add(not shape.begins_outside or lane % 2 == 1) for lane in range(shape.lanes)]
    older, span, turn = list(lanes), 4 * shape.lanes, 0
    while len(made.rows) < shape.rows:
        lane = turn % shape.lanes
        turn += 1
        reads = [lanes[lane]]
        if draw.chance(shape.skips):
            reads.append(draw.choice(older[-span:]))
        late = len(made.rows) > shape.rows * 0.6
        if waiting and late and draw.chance(0.3):
            reads.append(waiting.pop())
            supported = True
        else:
            supported = not draw.chance(shape.outside)
        name = made.add(supported, *dict.fromkeys(reads))
        if shape.several and draw.chance(shape.several):
            first, second = (made.add(supported, name, picks=True) for _ in range(2))
            older.append(second)
            name = first
        if draw.chance(shape.ends):
            made.add(not draw.chance(shape.outside), name)
        lanes[lane] = name
        older.append(name)
    if waiting:
        made.add(True, *dict.fromkeys([*lanes, *waiting]))
    return made.renamed()


def _chain(made: Rows, draw: Draw) -> str:
    """Add one to three supported rows in a chain, such as those that prepare a mask, and return the last one."""
    name = made.add(True, size=8192)
    for _ in range(draw.integer(0, 2)):
        name = made.add(True, name, size=8192)
    return name
