"""Hidden checks and controls of exercise 00.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.exercises.start_here import read_a_table as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

LONGER = (3, 5, 8, 12)


def truth(rows: list[visible.Row], part: str) -> str:
    """Return the node that the question asks for, computed from the readers of each node."""
    readers = {r["node"]: sum(r["node"] in s["arguments"].split(", ") for s in rows) for r in rows}
    if part == "leaf_module":
        return str(next(r["node"] for r in rows if r["op"] == "call_module"))
    if part == "two_users":
        return next(name for name, count in readers.items() if count == 2)
    return next(name for name, count in readers.items() if count == 0 and name != "output")


MISCONCEPTIONS = {
    "leaf_module": (
        Misconception(
            lambda rows: next(r["calls"] for r in rows if r["op"] == "call_module"),
            "That is what the node calls; its own name stands in the column node.",
        ),
        Misconception(
            lambda rows: next(r["node"] for r in rows if r["op"] == "call_function"),
            "That node calls a function, which has no parameters and is no module.",
        ),
    ),
    "two_users": (
        Misconception(
            lambda rows: rows[[r["users"] for r in rows].index(2) + 1]["node"],
            "That is the next line: the count stands in the line of the node that is read.",
        ),
    ),
    "dead": (
        Misconception(
            lambda rows: rows[-1]["node"],
            "The output has no users, and yet it is not dead: it is what the graph returns.",
        ),
    ),
}


def known(rows: list[visible.Row], part: str) -> Known:
    """Return the right answer to one question, and the known wrong ones."""
    return {"right": truth(rows, part), "wrong": wrong_values(rows, MISCONCEPTIONS[part])}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the leaf module, in longer tables", "leaf module", 0.5, visible.finds("leaf_module", LONGER)),
        Check("the node with two users, in longer tables", "two users", 0.5, visible.finds("two_users", LONGER)),
        Check("the dead node, in longer tables", "dead nodes", 0.5, visible.finds("dead", LONGER)),
    ),
    controls=(
        ANSWERS.reference(3),
        Control(
            "always the second node",
            "def read_table(rows):\n    return dict.fromkeys(['leaf_module', 'two_users', 'dead'], rows[1]['node'])\n",
            0,
        ),
        ANSWERS.edited("the output is dead", 2, (" if row['op'] != 'output'", "")),
    ),
)
