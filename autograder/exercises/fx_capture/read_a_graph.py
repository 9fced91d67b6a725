"""Exercise 04.1: read a torch.fx graph given as rows of plain data."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, same, shortened
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Row = Mapping[str, Any]
"""One node: {"name": str, "op": one of the six, "target": str, "args": names of the nodes it reads, in order, repeats
included}.
"""

FUNCTIONS = ("add", "mul", "relu", "matmul", "silu", "cat")
METHODS = ("view", "transpose", "contiguous")
MODULES = ("dense", "norm", "dropout", "block.0", "block.1")


known = kept(__name__, "known")


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
        last = [r["name"] for r in rows if r["op"] != "placeholder" and not readers(rows, r["name"])]
    return [*rows, _row("output", "output", "output", [last] if isinstance(last, str) else last)]


def _row(name: str, op: str, target: str, args: list[str] | None = None) -> Row:
    return {"name": name, "op": op, "target": target, "args": args or []}


def readers(rows: list[Row], name: str) -> list[str]:
    """Return the names of the nodes that read one."""
    return [r["name"] for r in rows if name in r["args"]]


HINTS = {
    "inputs": "An input of the graph is a node whose op is placeholder.",
    "leaf_modules": "A leaf module is called by a node whose op is call_module.",
    "two_users": "Count the nodes that read it, the output included, and count a node that reads it twice once.",
    "dead": "A node is dead when no chain of readers leads from it to the output, whoever else reads it.",
    "longest_path": "Count nodes, not edges: placeholder and output belong to the chain.",
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
            about = known(rows, part)
            expected = about["right"]
            if not same(found[part], expected):
                hint = named_mistake(found[part], about["wrong"]) or HINTS[part]
                raise CheckFailedError(
                    f"For a graph of {len(rows)} nodes {part} is {contrasted(found[part], expected, most=120)}. {hint}"
                )

    return run


def small_graphs(draw: Draw) -> list[list[Row]]:
    """Return small graphs; for each question, at least one graph has a non-empty answer."""
    return telling(lambda: [random_graph(draw, n, repeats=False) for n in (4, 6, 8, 9)])


def telling(drawn: Callable[[], list[list[Row]]]) -> list[list[Row]]:
    """Draw until each question has an answer, and until each known wrong length differs from the right one."""
    while True:
        graphs = drawn()
        asked = all(any(known(rows, part)["right"] for rows in graphs) for part in HINTS)
        lengths = [known(rows, "longest_path") for rows in graphs]
        wrong = zip(*([value for value, _ in about["wrong"]] for about in lengths), strict=True)
        if asked and all(list(values) != [about["right"] for about in lengths] for values in wrong):
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
        _visible("inputs", 0.5),
        _visible("leaf_modules", 0.5),
        _visible("two_users", 0.5),
        _visible("dead", 1),
        _visible("longest_path", 1),
    ),
)
