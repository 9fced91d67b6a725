"""Exercise 04.1: read a torch.fx graph given as rows of plain data."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, shortened
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

Row = Mapping[str, Any]
"""One node: {"name": str, "op": one of the six, "target": str, "args": names of the nodes it reads, in order, repeats
included}.
"""

FUNCTIONS = ("add", "mul", "relu", "matmul", "silu", "cat")
METHODS = ("view", "transpose", "contiguous")
MODULES = ("dense", "norm", "dropout", "block.0", "block.1")


def random_graph(draw: Draw, nodes: int, *, dead: bool = True, repeats: bool = True) -> list[Row]:
    """Return a random graph of `nodes` nodes between its one to three inputs and its output.

    With `dead`, some nodes do not influence the output; with `repeats`, a node may read another one twice.
    """
    rows: list[Row] = [
        _row(f"x{i}" if i else "x", "placeholder", f"x{i}" if i else "x") for i in range(draw.integer(1, 3))
    ]
    for i in range(nodes):
        names = [r["name"] for r in rows]
        op = draw.choice(("call_function", "call_function", "call_method", "call_module"))
        target = draw.choice({"call_function": FUNCTIONS, "call_method": METHODS, "call_module": MODULES}[op])
        count = 2 if op == "call_function" and target in ("add", "mul", "matmul", "cat") else 1
        recent = names[-4:]
        args = [draw.choice(recent) for _ in range(count)]
        if not repeats and len(set(args)) < count:
            args = draw.sample(recent, count) if len(recent) >= count else args[:1]
        rows.append(_row(f"{target.replace('.', '_')}_{i}", op, target, args))
    last = rows[-1]["name"]
    if not dead:
        last = [r["name"] for r in rows if r["op"] != "placeholder" and not _readers(rows, r["name"])]
    return [*rows, _row("output", "output", "output", [last] if isinstance(last, str) else last)]


def _row(name: str, op: str, target: str, args: list[str] | None = None) -> Row:
    return {"name": name, "op": op, "target": target, "args": args or []}


def _readers(rows: list[Row], name: str) -> list[str]:
    return [r["name"] for r in rows if name in r["args"]]


def _truth(rows: list[Row], part: str) -> Any:
    """Return the host's own answer to one question, computed from the readers of each node."""
    if part == "inputs":
        return [r["name"] for r in rows if r["op"] == "placeholder"]
    if part == "leaf_modules":
        return [r["name"] for r in rows if r["op"] == "call_module"]
    if part == "two_users":
        return [r["name"] for r in rows if len(_readers(rows, r["name"])) == 2]
    if part == "dead":
        return _dead(rows)
    return _longest(rows)


def _dead(rows: list[Row]) -> list[str]:
    reads = {r["name"]: r["args"] for r in rows}
    live, pending = set(), ["output"]
    while pending:
        name = pending.pop()
        if name not in live:
            live.add(name)
            pending += reads[name]
    return [r["name"] for r in rows if r["name"] not in live and r["op"] != "placeholder"]


def _longest(rows: list[Row]) -> int:
    """Return the number of nodes on the longest chain from an input to the output; 0 if there is no such chain."""
    return _lengths(rows)["output"]


def longest_anywhere(rows: list[Row]) -> int:
    """Return a wrong length: of the longest chain from an input to any node, dead ones included."""
    return max(_lengths(rows).values())


def _lengths(rows: list[Row]) -> dict[str, int]:
    length: dict[str, int] = {}
    for row in rows:
        below = max((length[a] for a in row["args"]), default=0)
        length[row["name"]] = 1 if row["op"] == "placeholder" else below + 1 if below else 0
    return length


HINTS = {
    "inputs": "An input of the graph is a node whose op is placeholder.",
    "leaf_modules": "A leaf module is called by a node whose op is call_module.",
    "two_users": "Count the nodes that read it, the output included, and count a node that reads it twice once.",
    "dead": "A node is dead when no chain of readers leads from it to the output, whoever else reads it.",
    "longest_path": "Count nodes, not edges: placeholder and output belong to the chain.",
}


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
                r["name"] for r in rows if not _readers(rows, r["name"]) and r["op"] not in ("placeholder", "output")
            ],
            "Only nodes without readers were taken: one that is read by dead nodes alone is dead, too.",
        ),
    ),
    "longest_path": (
        Misconception(
            lambda rows: max(_longest(rows) - 1, 0), "Edges were counted; count the nodes, both ends included."
        ),
        Misconception(
            longest_anywhere, "That chain ends at a dead node; look for the longest that ends at the output."
        ),
        Misconception(len, "All nodes were counted; count those on the longest chain from an input to the output."),
    ),
}


def question_right(part: str, graphs: Callable[[Draw], list[list[Row]]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for every one of `graphs`."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for rows in graphs(draw):
            found = answer.ask(rows, part)
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(
                    f"read_graph returned {shortened(found, 120)}; expected a dict with the keys {', '.join(HINTS)}."
                )
            expected = _truth(rows, part)
            if type(found[part]) is not type(expected) or found[part] != expected:
                hint = explained_value(found[part], rows, MISCONCEPTIONS.get(part, ())) or HINTS[part]
                raise CheckFailedError(
                    f"For a graph of {len(rows)} nodes {part} is {contrasted(found[part], expected, most=120)}. {hint}"
                )

    return run


def small_graphs(draw: Draw) -> list[list[Row]]:
    """Return small graphs; for each question, at least one graph has a non-empty answer."""
    return telling(lambda: [random_graph(draw, n, repeats=False) for n in (4, 6, 8, 9)])


def telling(drawn: Callable[[], list[list[Row]]]) -> list[list[Row]]:
    """Draw until each question has an answer, and until the longest chain of some graph ends at a dead node."""
    while True:
        graphs = drawn()
        asked = all(any(_truth(rows, part) for rows in graphs) for part in HINTS)
        if asked and any(longest_anywhere(rows) != _longest(rows) for rows in graphs):
            return graphs


def _visible(part: str, points: float) -> Check:
    return Check(f"{part} of small graphs", part.replace("_", " "), points, question_right(part, small_graphs))


EXERCISE = Exercise(
    title="Read a graph",
    kind=Kind.VALUE,
    entry_point="read_graph",
    points=6,
    wall_s=20,
    hints=(
        "`args` tells whom a node reads. Three of the five questions are about the other direction: who reads a node?",
        "Make a dict from each name to the set of its readers first. For dead nodes walk backwards from the output "
        "along `args`; for the longest path go through the rows in order, since each reads only earlier ones.",
        "Dead is every node that the walk did not reach, placeholders and output left out. The length at a node is 1 "
        "plus the largest length among its `args`, if any of those has one.",
    ),
    checks=(
        _visible("inputs", 0.65),
        _visible("leaf_modules", 0.65),
        _visible("two_users", 0.7),
        _visible("dead", 0.7),
        _visible("longest_path", 0.7),
    ),
)
