"""Hidden checks and controls of exercise 00.2."""

from __future__ import annotations

from autograder.exercises.start_here import read_a_table as visible
from autograder.host.exercise import Check, Control, HiddenPart

LONGER = (3, 5, 8, 12)

REFERENCE = """
def read_table(rows):
    return {
        "leaf_module": next(row["node"] for row in rows if row["op"] == "call_module"),
        "two_users": next(row["node"] for row in rows if row["users"] == 2),
        "dead": next(row["node"] for row in rows if row["users"] == 0 and row["op"] != "output"),
    }
"""

HIDDEN = HiddenPart(
    checks=(
        Check("the leaf module, in longer tables", "leaf module", 0.3, visible.finds("leaf_module", LONGER)),
        Check("the node with two users, in longer tables", "two users", 0.4, visible.finds("two_users", LONGER)),
        Check("the dead node, in longer tables", "dead nodes", 0.5, visible.finds("dead", LONGER)),
    ),
    controls=(
        Control("reference", REFERENCE, 3),
        Control(
            "always the second node",
            "def read_table(rows):\n    return dict.fromkeys(['leaf_module', 'two_users', 'dead'], rows[1]['node'])\n",
            0,
        ),
        Control(
            "the output is dead",
            REFERENCE.replace(' and row["op"] != "output"', "").replace(
                'next(row["node"] for row in rows if row["users"] == 0)',
                '[row["node"] for row in rows if row["users"] == 0][-1]',
            ),
            1.8,
        ),
    ),
)
