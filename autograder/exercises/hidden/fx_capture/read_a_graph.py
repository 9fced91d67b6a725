"""Hidden checks and controls of exercise 04.1."""

from typing import Any

from autograder.exercises.fx_capture import read_a_graph as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values


def _large(draw: Draw) -> list[list[visible.Row]]:
    return visible.telling(lambda: [visible.random_graph(draw, draw.integer(20, 60)) for _ in range(8)])


def _all_live(draw: Draw) -> list[list[visible.Row]]:
    """Return graphs in which nothing is dead, and one in which nearly everything is."""
    live = [visible.random_graph(draw, n, dead=False) for n in (5, 30)]
    return [*live, visible.random_graph(draw, 40)]


def _check(part: str, points: float) -> Check:
    return Check(f"{part} of large graphs", part.replace("_", " "), points, visible.question_right(part, _large))


def _truth(rows: list[visible.Row], part: str) -> Any:
    """Return the host's own answer to one question, computed from the readers of each node."""
    if part == "inputs":
        return [r["name"] for r in rows if r["op"] == "placeholder"]
    if part == "leaf_modules":
        return [r["name"] for r in rows if r["op"] == "call_module"]
    if part == "two_users":
        return [r["name"] for r in rows if len(visible.readers(rows, r["name"])) == 2]
    if part == "dead":
        return _dead(rows)
    return _longest(rows)


def _dead(rows: list[visible.Row]) -> list[str]:
    reads = {r["name"]: r["args"] for r in rows}
    live, pending = set(), ["output"]
    while pending:
        name = pending.pop()
        if name not in live:
            live.add(name)
            pending += reads[name]
    return [r["name"] for r in rows if r["name"] not in live and r["op"] != "placeholder"]


def _longest(rows: list[visible.Row]) -> int:
    """Return the number of nodes on the longest chain from an input to the output; 0 if there is no such chain."""
    return _lengths(rows)["output"]


def _lengths(rows: list[visible.Row]) -> dict[str, int]:
    length: dict[str, int] = {}
    for row in rows:
        below = max((length[a] for a in row["args"]), default=0)
        length[row["name"]] = 1 if row["op"] == "placeholder" else below + 1 if below else 0
    return length


MISCONCEPTIONS = {
    "two_users": (
        Misconception(
            lambda rows: [r["name"] for r in rows if sum(s["args"].count(r["name"]) for s in rows) == 2],
            "Each use was counted: a node that reads another twice is one user, not two.",
        ),
    ),
    "dead": (
        Misconception(
            lambda rows: [
                r["name"]
                for r in rows
                if not visible.readers(rows, r["name"]) and r["op"] not in ("placeholder", "output")
            ],
            "Only nodes without readers were taken: one that is read by dead nodes alone is dead, too.",
        ),
    ),
    "longest_path": (
        Misconception(
            lambda rows: max(_longest(rows) - 1, 0), "Edges were counted; count the nodes, both ends included."
        ),
        Misconception(
            lambda rows: max(_lengths(rows).values()),
            "That chain ends at a dead node; look for the longest that ends at the output.",
        ),
        Misconception(len, "All nodes were counted; count those on the longest chain from an input to the output."),
    ),
}


def known(rows: list[visible.Row], part: str) -> Known:
    """Return the right answer to one question, and the known wrong ones."""
    return {"right": _truth(rows, part), "wrong": wrong_values(rows, MISCONCEPTIONS.get(part, ()))}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        _check("two_users", 0.5),
        _check("dead", 0.5),
        Check("dead nodes, none or nearly all", "dead", 0.5, visible.question_right("dead", _all_live)),
        _check("longest_path", 1),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited(
            "the longest chain to anywhere",
            4,
            ("next((depth.get(row['name'], 0) for row in rows if row['op'] == 'output'), 0)", "max(depth.values())"),
        ),
        Control(
            "strings",
            "def read_graph(rows):\n"
            "    return dict.fromkeys(['inputs', 'leaf_modules', 'two_users', 'dead', 'longest_path'], 'x')\n",
            0,
        ),
    ),
)
