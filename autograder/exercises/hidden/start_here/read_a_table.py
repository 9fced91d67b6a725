"""Hidden checks and controls of exercise 00.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.start_here import read_a_table as visible
from autograder.host.exercise import Check, Control, HiddenPart

LONGER = (3, 5, 8, 12)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the leaf module, in longer tables", "leaf module", 0.4, visible.finds("leaf_module", LONGER)),
        Check("the node with two users, in longer tables", "two users", 0.4, visible.finds("two_users", LONGER)),
        Check("the dead node, in longer tables", "dead nodes", 0.4, visible.finds("dead", LONGER)),
    ),
    controls=(
        ANSWERS.reference(3),
        Control(
            "always the second node",
            "def read_table(rows):\n    return dict.fromkeys(['leaf_module', 'two_users', 'dead'], rows[1]['node'])\n",
            0,
        ),
        ANSWERS.edited("the output is dead", 1.9, (" if row['op'] != 'output'", "")),
    ),
)
