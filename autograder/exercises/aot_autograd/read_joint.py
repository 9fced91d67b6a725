"""Exercise 08.3: read a joint graph: find which values are saved for backward, why, and which could be recomputed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Row = Mapping[str, Any]
POINTWISE = ("mul", "add", "tanh", "exp", "relu")
OTHER = ("mm", "sum", "native_dropout")


def random_joint(draw: Draw, forward: int, backward: int) -> list[Row]:
    """Return a joint graph as rows: inputs, forward, the gradient of the output, backward."""
    rows = [
        _row(f"primals_{i + 1}", "input", [], "forward", draw.integer(1, 9) * 64) for i in range(draw.integer(2, 3))
    ]
    for i in range(forward):
        op = draw.choice((*POINTWISE, *POINTWISE, *OTHER))
        args = draw.sample([r["name"] for r in rows][-5:], 2 if op in ("mul", "add", "mm") else 1)
        rows.append(_row(f"{op}_{i}", op, args, "forward", draw.integer(1, 9) * 64))
    ahead = [r["name"] for r in rows]
    rows.append(_row("tangents_1", "input", [], "backward", rows[-1]["bytes"]))
    behind = ["tangents_1"]
    for i in range(backward):
        op = draw.choice(("mul", "mul", "mm", "sum", "add"))
        args = [draw.choice(behind[-3:])]
        if op in ("mul", "mm") and draw.chance(0.75):
            args.append(draw.choice(ahead))
        rows.append(_row(f"grad_{op}_{i}", op, args, "backward", draw.integer(1, 9) * 64))
        behind.append(rows[-1]["name"])
    return rows


def _row(name: str, op: str, args: list[str], part: str, size: int) -> Row:
    return {"name": name, "op": op, "args": args, "part": part, "bytes": size}


def _saved(rows: Sequence[Row]) -> list[str]:
    read = {a for r in rows if r["part"] == "backward" for a in r["args"]}
    return [r["name"] for r in rows if r["part"] == "forward" and r["name"] in read]


def truth(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the host's own answer."""
    by_name = {r["name"]: r for r in rows}
    saved = _saved(rows)
    return {
        "saved": saved,
        "bytes": sum(by_name[n]["bytes"] for n in saved),
        "why": {n: next(r["name"] for r in rows if r["part"] == "backward" and n in r["args"]) for n in saved},
        "again": [n for n in saved if _cheap(by_name, n, saved)],
    }


def _cheap(by_name: dict[str, Row], name: str, saved: Sequence[str]) -> bool:
    """Return whether one pointwise operator computes a value from values that backward has anyway."""
    row = by_name[name]
    there = [n for n in saved if n != name] + [n for n, r in by_name.items() if r["op"] == "input"]
    return row["op"] in POINTWISE and all(a in there for a in row["args"])


MISCONCEPTIONS = {
    "saved": (
        Misconception(
            lambda rows: [n for n in _saved(rows) if not n.startswith("primals")],
            "Inputs were left out: a primal that backward reads is kept alive as well.",
        ),
        Misconception(
            lambda rows: [r["name"] for r in rows if r["part"] == "forward" and r["op"] != "input"],
            "All of forward was listed; only what a node of backward reads is kept.",
        ),
    ),
    "bytes": (
        Misconception(
            lambda rows: sum(
                r["bytes"] * sum(s["args"].count(r["name"]) for s in rows if s["part"] == "backward")
                for r in rows
                if r["part"] == "forward"
            ),
            "Each reading was counted; a value that is read twice is kept once.",
        ),
    ),
    "why": (
        Misconception(
            lambda rows: {
                n: [r["name"] for r in rows if r["part"] == "backward" and n in r["args"]][-1] for n in _saved(rows)
            },
            "The last reader was named; the first one in the order of the rows is asked for.",
        ),
    ),
    "again": (
        Misconception(
            lambda rows: [n for n in _saved(rows) if next(r["op"] for r in rows if r["name"] == n) in POINTWISE],
            "All pointwise values were listed; what they are computed from has to be there in backward, too.",
        ),
        Misconception(
            lambda rows: [
                n
                for n in _saved(rows)
                if all(a in _saved(rows) for a in next(r["args"] for r in rows if r["name"] == n))
            ],
            "Products, sums or random masks were listed, or inputs of the graph forgotten: those are always there.",
        ),
    ),
}


def joint_right(part: str, sizes: Sequence[tuple[int, int]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check of one part of the answer on joint graphs of the given sizes (forward, backward)."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for rows in [random_joint(draw, *size) for size in sizes] + [_telling(part, draw)]:
            found, expected = answer.ask(rows), truth(rows)[part]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError("read_joint returns a dict with the keys saved, bytes, why and again.")
            if type(found[part]) is not type(expected) or found[part] != expected:
                why = explained_value(found[part], rows, MISCONCEPTIONS[part])
                raise CheckFailedError(
                    f"For a joint graph of {len(rows)} rows {part} is "
                    f"{contrasted(found[part], expected)}. {why}".strip()
                )

    return run


def _telling(part: str, draw: Draw) -> list[Row]:
    """Return a graph for which every known mistake about a part gives a wrong answer."""
    graphs = (random_joint(draw, 9, 9) for _ in range(10_000))
    return next(g for g in graphs if all(m.formula(g) != truth(g)[part] for m in MISCONCEPTIONS[part]))


EXERCISE = Exercise(
    title="Read the joint graph",
    kind=Kind.VALUE,
    entry_point="read_joint",
    points=6,
    hints=(
        "Look at the rows of backward first: what do their args name that is no row of backward?",
        "A value that is read several times is kept once; go through forward in order, and ask who reads it.",
        "For again: the op is pointwise, and every arg is an input or one of the other saved values.",
    ),
    checks=(
        Check("what is saved", "saved", 1.2, joint_right("saved", [(4, 4), (6, 6), (8, 8)])),
        Check("how many bytes", "bytes", 0.6, joint_right("bytes", [(4, 4), (6, 6), (8, 8)])),
        Check("the first reader of each", "why", 0.8, joint_right("why", [(4, 4), (6, 6), (8, 8)])),
        Check("what could be computed again", "again", 1, joint_right("again", [(4, 4), (6, 6), (8, 8)])),
    ),
)
