"""Exercise 08.3: read a joint graph: find which values are saved for backward, why, and which could be recomputed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Row = Mapping[str, Any]
POINTWISE = ("mul", "add", "tanh", "exp", "relu")
OTHER = ("mm", "sum", "native_dropout")

known = kept(__name__, "known")
tells = kept(__name__, "tells")


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


def joint_right(part: str, sizes: Sequence[tuple[int, int]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check of one part of the answer on joint graphs of the given sizes (forward, backward)."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for rows in [random_joint(draw, *size) for size in sizes] + [_telling(part, draw)]:
            found, about = answer.ask(rows), known(rows, part)
            expected = about["right"]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError("read_joint returns a dict with the keys saved, bytes, why and again.")
            if not same(found[part], expected):
                why = named_mistake(found[part], about["wrong"])
                raise CheckFailedError(
                    f"For a joint graph of {len(rows)} rows {part} is "
                    f"{contrasted(found[part], expected)}. {why}".strip()
                )

    return run


def _telling(part: str, draw: Draw) -> list[Row]:
    """Return a graph for which every known mistake about a part gives a wrong answer."""
    graphs = (random_joint(draw, 9, 9) for _ in range(10_000))
    return next(rows for rows in graphs if tells(rows, part))


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
        Check("what is saved", "saved", 1, joint_right("saved", [(4, 4), (6, 6), (8, 8)])),
        Check("how many bytes", "bytes", 0.5, joint_right("bytes", [(4, 4), (6, 6), (8, 8)])),
        Check("the first reader of each", "why", 1, joint_right("why", [(4, 4), (6, 6), (8, 8)])),
        Check("what could be computed again", "again", 1, joint_right("again", [(4, 4), (6, 6), (8, 8)])),
    ),
)
