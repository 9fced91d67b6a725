"""Exercise 00.2: read the table of a small torch.fx graph."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

Row = Mapping[str, Any]
"""One line of the table: {"node": str, "op": str, "calls": str, "arguments": str, "users": int}."""

NAMES = {
    "function": ("relu", "tanh", "norm", "gate", "neg"),
    "method": ("view", "contiguous", "relu", "norm"),
    "module": ("dense", "norm", "gate", "relu", "view"),
}
"""Names by kind of node: what a node calls cannot be told from its name alone."""
CLASSES = {
    "dense": ("Linear", "Bilinear"),
    "norm": ("LayerNorm", "RMSNorm"),
    "gate": ("GLU", "Sigmoid"),
    "relu": ("ReLU", "ReLU6"),
    "view": ("Flatten", "Unflatten"),
}
PARTS = ("leaf_module", "two_users", "dead")


known = kept(__name__, "known")


def small_table(draw: Draw, extra: int = 0) -> list[Row]:
    """Return a table of five and `extra` nodes, with one leaf module, one node with two users and one dead node.

    The nodes get their roles at random: the input has two users, or the leaf module, or a function.
    """
    kinds = draw.sample(["module", "method", *["function"] * (1 + extra)], 3 + extra)
    names = ["x", *(_name(draw, kind, i) for i, kind in enumerate(kinds)), "output"]
    dead = draw.integer(1, len(names) - 2)
    chain = [name for i, name in enumerate(names) if i != dead]
    reads = {name: [chain[i]] for i, name in enumerate(chain[1:])}  # each reads the one before
    twice = chain[draw.integer(0, dead - 1)]
    reads[names[dead]] = [twice]
    return [_row(draw, name, ["placeholder", *kinds, "output"][i], reads) for i, name in enumerate(names)]


def _name(draw: Draw, kind: str, number: int) -> str:
    return f"{draw.choice(NAMES[kind])}_{number}"


def _row(draw: Draw, name: str, kind: str, reads: dict[str, list[str]]) -> Row:
    op = kind if kind in ("placeholder", "output") else f"call_{kind}"
    called = name.rsplit("_", 1)[0]
    users = sum(name in read for read in reads.values())
    return {
        "node": name,
        "op": op,
        "calls": f"{draw.choice(CLASSES[called])} ({called})" if kind == "module" else called,
        "arguments": ", ".join(reads.get(name, [])),
        "users": users,
    }


SAYS = {
    "leaf_module": "A leaf module is called by a node whose op is call_module.",
    "two_users": "The column users counts the nodes that read a result.",
    "dead": "Dead is a node whose result nobody reads; the output is what all others are for.",
}


def finds(part: str, extras: tuple[int, ...]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's entry `part` is right for tables with these numbers of extra nodes."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for extra in extras:
            rows = small_table(draw, extra)
            found, about = answer.ask(rows, part), known(rows, part)
            expected = about["right"]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError(f"read_table returned {found!r:.120}; expected a dict with {', '.join(PARTS)}.")
            if found[part] not in (expected, [expected], (expected,)):  # a list of the one name is as good
                says = _form(found[part]) or named_mistake(found[part], about["wrong"])
                says = says or SAYS[part]
                raise CheckFailedError(
                    f"In a table of {len(rows)} nodes {part} is {contrasted(found[part], expected)}. {says}"
                )

    return run


def _form(found: Any) -> str:
    """Return a sentence about an answer that is no name."""
    if isinstance(found, list):
        return "Return the one name, not a list of several."
    if isinstance(found, dict):
        return "That is a whole row; return its entry `node`."
    if isinstance(found, int):
        return "Return the name of the node, not a number."
    return "" if isinstance(found, str) else "Return the name of the node as a text."


FIVE = (0,) * 6


EXERCISE = Exercise(
    title="Read a table",
    kind=Kind.VALUE,
    entry_point="read_table",
    points=3,
    wall_s=20,
    hints=(
        "Everything that is asked stands in two columns: `op` and `users`. Which one answers which question?",
        "Write one loop, or one `next(...)`, a question: go through the rows and take the name in column `node` of the "
        "row that fits.",
        "Nobody reads a dead node, so its `users` is 0. That is true of one other row, too, which you must leave out.",
    ),
    checks=(
        Check("the leaf module, in tables of five nodes", "leaf module", 0.5, finds("leaf_module", FIVE)),
        Check("the node with two users, in tables of five nodes", "two users", 0.5, finds("two_users", FIVE)),
        Check("the dead node, in tables of five nodes", "dead nodes", 0.5, finds("dead", FIVE)),
    ),
)
