"""Hidden checks and controls of exercise 10.3."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.backends.partition_without_cycles import (
    SWEEPS,
    Parts,
    digest,
    drawn,
    few_bytes,
    fewest,
    stored_bytes,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.supported_rows import Row, Shape
from autograder.host.exercise import Check, Control, HiddenPart

MOST_EXPLAINED = 2000  # rows of a graph for which wrong partitions are looked for
Step = Callable[[Row, Row], int]
"""Map a row and one of its inputs to the number of parts that lie between them at least."""


def enters(row: Row, read: Row) -> int:
    """Count a step where a path comes back from a row that the target does not take."""
    return int(row["supported"] and not read["supported"])


def earliest(rows: Sequence[Row], step: Step, outside: int = -1) -> dict[str, int]:
    """Return for each row the largest number of steps on a path to it; `outside` is where unsupported rows begin."""
    known: dict[str, Row] = {}
    found: dict[str, int] = {}
    for row in rows:
        known[row["name"]] = row
        begin = 0 if row["supported"] else outside
        found[row["name"]] = max((found[n] + step(row, known[n]) for n in row["inputs"]), default=begin)
    return found


def latest(rows: Sequence[Row], early: Mapping[str, int], *, together: bool = True) -> dict[str, int]:
    """Return for each row the last part from which it serves all users; `together` puts picks to their input."""
    users: dict[str, list[Row]] = {row["name"]: [] for row in rows}
    found: dict[str, int] = {}
    for row in rows:
        for name in row["inputs"]:
            users[name].append(row)
    for row in reversed(rows):
        ends = early[row["name"]]
        found[row["name"]] = min((found[u["name"]] - enters(u, row) for u in users[row["name"]]), default=ends)
    for row in rows:
        if row["picks"] and together:
            found[row["name"]] = found[row["inputs"][0]]
    return found


def _taken(rows: Sequence[Row], places: Mapping[str, int]) -> Parts:
    return {row["name"]: places[row["name"]] for row in rows if row["supported"]}


def _depth(rows: Sequence[Row]) -> Parts:
    return _taken(rows, earliest(rows, lambda row, read: 1, 0))


def _every_row_outside(rows: Sequence[Row]) -> Parts:
    return _taken(rows, earliest(rows, lambda row, read: int(not read["supported"]), 0))


def _from_zero(rows: Sequence[Row]) -> Parts:
    return _taken(rows, earliest(rows, enters, 0))


def _connected(rows: Sequence[Row]) -> Parts:
    """Return the parts by stage, each divided into the pieces that edges connect."""
    early = earliest(rows, enters)
    piece = {row["name"]: number for number, row in enumerate(rows)}

    def root(name: str) -> str:
        while top[name] != name:
            top[name] = top[top[name]]
            name = top[name]
        return name

    top = {name: name for name in piece}
    supported = {row["name"] for row in rows if row["supported"]}
    for row in rows:
        for name in row["inputs"]:
            if name in supported and row["name"] in supported and early[name] == early[row["name"]]:
                top[root(row["name"])] = root(name)
    return _taken(rows, {name: piece[root(name)] for name in piece})


WRONG: Mapping[Callable[[Sequence[Row]], Parts], str] = {
    _depth: "The part is the number of rows on the way to a row. Rows that read each other may share a part.",
    _every_row_outside: "Each row that the target does not take began a new part. Two of them in a row are one gap.",
    _from_zero: "The first part stayed almost empty: a row outside that no part comes before begins at -1, not at 0.",
    _connected: "Each part is connected. Rows without a path between them may share a part, too: one launch for both.",
}


def facts_of(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the fewest parts, and of a begin at 0, the bytes that late and early rows store, and known mistakes."""
    early = earliest(rows, enters)
    late = latest(rows, early)
    parts = _taken(rows, early)
    few = len(set(parts.values()))
    finds = WRONG.items() if len(rows) <= MOST_EXPLAINED else ()
    wrong = {digest(found): says for find, says in finds if len(set((found := find(rows)).values())) > few}
    return {
        "fewest": few,
        "late": stored_bytes(rows, _taken(rows, late)),
        "early": stored_bytes(rows, parts),
        "from zero": len(set(_taken(rows, latest(rows, earliest(rows, enters, 0))).values())),
        "picks apart": late != latest(rows, early, together=False),
        "wrong": wrong,
    }


ANSWERS = Answers(__name__)

STEP = "part + (row['supported'] and (not taken))"
SLIPS: tuple[Any, ...] = (
    ("unsupported rows begin at 0", 17, "", ("0 if row['supported'] else -1", "0")),
    ("as early as possible", 15, "", ("else late", "else early")),
    (
        "picks are rows like others",
        17.3,
        "below",
        ("row['inputs'][0]['state']['part'] if row['picks'] else late", "late"),
    ),
    ("every row is a step", 12, "below", (STEP, "part + 1")),
    ("every row outside is a step", 15, "below", (STEP, "part + (not taken)")),
    ("the first input decides", 14, "below", ("= max((", "= min((")),
    ("the last user decides", 6, "below", ("late = min((", "late = max((")),
    ("no step on the way back", 6, "below", ("part - (taken and (not row['supported']))", "part")),
    ("a part is a text", 0, "", ("'part': part if", "'part': str(part) if")),
    ("users always have a state", 0, "", (" if user['state']]", "]")),
)
"""Likely slips: name, marks, whether it gets less, and edits of the reference."""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "many ways round",
            "diamonds",
            2,
            fewest(drawn(Shape(60, 3, 0.3, 0.8)), drawn(Shape(120, 5, 0.3, 0.9)), drawn(Shape(80, 2, 0.4, 0.7))),
        ),
        Check(
            "rows with several results",
            "several results",
            1.5,
            fewest(*[drawn(Shape(50, 3, several=0.3, early=2))] * 2),
        ),
        Check("the first rows are not supported", "begin", 1, fewest(*[drawn(Shape(30, 4, begins_outside=True))] * 3)),
        Check(
            "visits of 10,000 rows",
            "visits",
            2,
            fewest(drawn(Shape(10_000, 40, early=6)), sweeps=SWEEPS),
        ),
        Check("few bytes in larger graphs", "bytes", 1, few_bytes(*[drawn(Shape(150, 4, early=8), waits=True)] * 2)),
    ),
    controls=(
        ANSWERS.reference(18),
        *ANSWERS.styles(18),
        ANSWERS.edited(
            "parts are floats", 18, ("starts = 0 if row['supported'] else -1", "starts = -float(not row['supported'])")
        ),
        ANSWERS.edited("unsupported rows have a number, too", 18, ("part if row['supported'] else None", "part")),
        *(ANSWERS.edited(name, marks, *edits, below=bool(below)) for name, marks, below, *edits in SLIPS),
        ANSWERS.file("late by one a visit", 14.5),
        ANSWERS.file("all that came before", 0),
        Control("one part for all", "def visit(row):\n    return {'part': 0 if row['supported'] else None}\n", 0),
        Control(
            "each row alone",
            "def visit(row):\n    return {'part': int(row['name'][1:]) if row['supported'] else None}\n",
            0,
        ),
    ),
)
