"""Exercise 14.3: find where two graphs begin to differ, whatever the names of their nodes are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.exercises.programs import graph_rows
from autograder.exercises.programs.graph_rows import Row
from autograder.exercises.programs.library_passes import PASSES_OF_TORCH
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer

LETTERS = "bcdfghklmnpqrtvwz"
NAMES = [one + other for one in LETTERS for other in LETTERS]
RETURNS = "Return two lists of names, of nodes before and of nodes after, such as (['relu'], [])."


def node(key: str) -> dict[str, str]:
    """Return an argument that stands for the row with this key."""
    return {"node": key}


@dataclass
class Pair:
    """Two graphs as rows, whose names are keys that both share, and where a difference begins."""

    draw: Draw
    before: list[Row]
    after: list[Row]
    starts: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    moves: bool = False  # whether the rows after come in another order
    renames: bool = False  # whether inputs have other names, too

    def row(self, key: str, *, old: bool = False) -> Row:
        """Return the row with this key, of the graph after or, with `old`, before."""
        return next(row for row in (self.before if old else self.after) if row["name"] == key)

    def begins(self, before: tuple[str, ...], after: tuple[str, ...] | None = None) -> None:
        """Note that a difference begins at these nodes; in both graphs, unless `after` says otherwise."""
        self.starts[0].update(before)
        self.starts[1].update(before if after is None else after)


def row(key: str, call: str, *args: Any, **keywords: Any) -> Row:
    """Return one row."""
    return {"name": key, "call": call, "args": list(args), "keywords": keywords}


def program(draw: Draw) -> list[Row]:
    """Return a graph of two branches, one of `x` and one of `y`, which a product joins.

    The operands of `first` come from the same operators, for a drawn number of steps, and begin with another input.
    """
    steps = draw.integer(2, 4)
    number, low = draw.integer(2, 9), draw.integer(1, 4) / 8
    table = [[draw.integer(-9, 9) for _ in range(3)] for _ in range(2)]
    return [
        row("x", "input"),
        row("y", "input"),
        row("table", "constant", table, "float32", "table"),
        *(row(f"{own}{step + 1}", "tanh.default", node(f"{own}{step or ''}")) for own in "xy" for step in range(steps)),
        row("first", "sub.Tensor", node(f"x{steps}"), node(f"y{steps}")),
        row("shifted", "add.Tensor", node("first"), number),
        row("joined", "cat.default", [node("shifted"), node("x")], draw.integer(0, 1)),
        row("scaled", "mul.Tensor", node("y"), node("table")),
        row("limited", "clamp.default", node("scaled"), min=-low, max=low),
        row("curved", draw.choice(("relu.default", "sigmoid.default")), node("limited")),
        row("product", "matmul.default", node("joined"), node("curved")),
        row("output", "output", node("product")),
    ]


Edit = Callable[[Pair], None]


def swapped(pair: Pair) -> None:
    """Swap the operands of the difference."""
    pair.row("first")["args"].reverse()
    pair.begins(("first",))


def number(pair: Pair) -> None:
    """Change the number that is added."""
    pair.row("shifted")["args"][1] += 1
    pair.begins(("shifted",))


def listed(pair: Pair) -> None:
    """Swap the tensors that are joined."""
    pair.row("joined")["args"][0].reverse()
    pair.begins(("joined",))


def inserted(pair: Pair) -> None:
    """Put one more node between two."""
    at = pair.after.index(pair.row("curved"))
    pair.after.insert(at, row("extra", "neg.default", node("limited")))
    pair.row("curved")["args"] = [node("extra")]
    pair.begins(("curved",), ("extra",))


def unused(pair: Pair) -> None:
    """Add a node that nothing reads."""
    pair.after.insert(-1, row("unused", "neg.default", node("shifted")))
    pair.begins((), ("unused",))


def renamed(pair: Pair) -> None:
    """Change names only, those of inputs included."""
    pair.renames = True


def pair_of(draw: Draw, *edits: Edit) -> Pair:
    """Return a graph before and after these edits."""
    before = program(draw)
    pair = Pair(draw, before, _copied(before))
    for edit in edits:
        edit(pair)
    return pair


def _copied(value: Any) -> Any:
    """Return the same lists and dicts anew."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _named(rows: list[Row], draw: Draw, *, inputs: bool) -> tuple[list[Row], dict[str, str]]:
    """Return the rows with random names, and the name of each key; names of inputs change only if `inputs` is set."""
    names = dict(zip([each["name"] for each in rows], draw.sample(NAMES, len(rows)), strict=True))
    kept = [each["name"] for each in rows if each["call"] == "output" or (each["call"] == "input" and not inputs)]
    names |= {key: key for key in kept}

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {"node": names[value["node"]]}
        return [told(each) for each in value] if isinstance(value, list) else value

    return [each | {"name": names[each["name"]], "args": told(each["args"])} for each in rows], names


def _moved(rows: list[Row], draw: Draw) -> list[Row]:
    """Return the rows in a random order in which each still follows what it reads; inputs stay first."""
    moved, waiting = [r for r in rows if r["call"] == "input"], [r for r in rows if r["call"] != "input"]
    while waiting:
        there = {each["name"] for each in moved}
        ready = [each for each in waiting if all(key in there for key in _read(each["args"]))]
        ready = [each for each in ready if each["call"] != "output" or len(waiting) == 1]
        moved.append(draw.choice(ready))
        waiting.remove(moved[-1])
    return moved


def _read(value: Any) -> list[str]:
    """Return the keys that arguments read."""
    if isinstance(value, dict):
        return [value["node"]]
    return [key for each in value for key in _read(each)] if isinstance(value, list) else []


Case = tuple[str, str, tuple[Edit, ...]]
"""A name that completes "For ...", a sentence about the rule, and the edits."""

BEGINS = "A difference begins only where all operands have partners."

EQUAL: Case = ("graphs that differ in names only", "Names, also those of inputs, say nothing.", (renamed,))


def finds(*cases: Case) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that the answer finds where each pair begins to differ; one wrong pair loses all points."""

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        for about, rule, edits in draw.sample(cases, len(cases)):
            require_found(answer, pair_of(draw, *edits), f"For {about}", rule)

    return run


def require_found(answer: AnalysisAnswer, pair: Pair, about: str, rule: str) -> None:
    """Raise `CheckFailedError` unless the answer names the nodes where the two graphs begin to differ."""
    after = _moved(pair.after, pair.draw) if pair.moves else pair.after
    graphs = [_named(rows, pair.draw, inputs=pair.renames) for rows in (pair.before, after)]
    found = answer.employ(graph_rows, "compare", before=graphs[0][0], after=graphs[1][0])
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(each, list) for each in found):
        raise CheckFailedError(f"first_differences returned {found!r:.80}. {RETURNS}")
    for which, told, starts, (rows, names) in zip(("before", "after"), found, pair.starts, graphs, strict=True):
        calls = {each["name"]: each["call"] for each in rows}
        if strange := [each for each in told if not isinstance(each, str) or each not in calls]:
            raise CheckFailedError(f"{about}: {strange[0]!r:.40} is no node of the graph {which}. {RETURNS}")
        expected = {names[key] for key in starts}
        if missed := sorted(expected - set(told)):
            raise CheckFailedError(f"{about}: {which}, {_calls(missed, calls)} is missing. {rule}")
        if more := sorted(set(told) - expected):
            why = BEGINS if _downstream(rows, expected).issuperset(more) else rule
            raise CheckFailedError(f"{about}: {which}, {_calls(more, calls)} does not belong there. {why}")


def _downstream(rows: list[Row], starts: set[str]) -> set[str]:
    """Return the names of rows that read `starts`, directly or through others."""
    reached = set(starts)
    for each in rows:
        if reached.intersection(_read(each["args"])):
            reached.add(each["name"])
    return reached - starts


def _calls(names: list[str], calls: dict[str, str]) -> str:
    return ", ".join(f"{name} ({calls[name]})" for name in names[:3])


EXERCISE = Exercise(
    title="Diff two graphs",
    kind=Kind.ANALYSIS,
    entry_point="first_differences",
    points=8,
    wall_s=20,
    masked=(
        "course_lib.graph",
        "course_lib.fusion",
        "course_lib.profiling",
        *PASSES_OF_TORCH,
    ),  # profiling imports graph
    hints=(
        "Give each node a number, equal in both graphs where nodes compute the same. Its operands' numbers are known.",
        "A dict from a key to its number serves both graphs. fx.map_arg(node.args, f) puts f(operand) in place of each "
        'operand, in lists too; let f mark what was an operand, as in ("node", number), since it is no literal. '
        "repr of the result tells 1 from 1.0.",
        "collections.Counter counts the numbers of the other graph. Take one away for each node: below zero, it has no "
        "partner.",
    ),
    checks=(
        Check(
            "names do not matter",
            "names",
            1,
            finds(EQUAL, ("another number", "Literal arguments belong to a call.", (number,))),
        ),
        Check(
            "arguments",
            "arguments",
            1.5,
            finds(
                ("swapped operands", "The order of operands belongs to a call.", (swapped,)),
                ("swapped operands in a list", "Operands may stand in a list.", (listed,)),
            ),
        ),
        Check(
            "an extra node",
            "nodes",
            2,
            finds(
                ("an extra node", BEGINS, (inserted,)),
                ("a node that nothing reads", "Each node counts, also one without users.", (unused,)),
            ),
        ),
    ),
)
