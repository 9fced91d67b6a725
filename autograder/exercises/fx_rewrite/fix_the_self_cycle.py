"""Exercise 05.1: insert a node after another one without making the new node read itself."""

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional as F

from autograder.host.checks.rewrite_checks import Rewriting, Run, WrongTurn, rewritten
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.traced import Program, TensorSpec, traced

ROWS = TensorSpec((3, 4))
CYCLE = WrongTurn(
    "the new node reads itself. `replace_all_uses_with` redirects every reader of relu, and the new node is one of "
    "them: leave it out.",
    refused="no earlier node has that name",
)


def inserting(
    name: str,
    program: Callable[..., object],
    right: Callable[..., object],
    *,
    calls: int,
    count: int,
    first_only: Callable[..., object] | None = None,
    replaced: Callable[..., object] | None = None,
    inputs: Sequence[TensorSpec] = (ROWS,),
    warning: str = "",
) -> Rewriting:
    """Return a program, and the same with a tanh after each relu, which has `calls` calls and `count` tanhs.

    The `warning` explains other values to the student.
    """
    turns = [CYCLE, WrongTurn("nobody reads the new node: send relu's readers to it.", computes=program)]
    if first_only:
        turns.append(WrongTurn("only one relu got its tanh; go through all nodes.", computes=first_only))
    if replaced:
        turns.append(WrongTurn("tanh stands in place of relu; it has to stand behind it.", computes=replaced))
    return Rewriting(
        Program(f"`{name}`", lambda: program, tuple(inputs), 0, ((TensorSpec((1, 4)),),)),
        calls,
        {"torch.tanh": count},
        expected=lambda: right,
        wrong_turns=tuple(turns),
        warning=warning,
    )


ONE = inserting(
    "torch.relu(x) + 1",
    lambda x: torch.relu(x) + 1,
    lambda x: torch.tanh(torch.relu(x)) + 1,
    calls=3,
    count=1,
    replaced=lambda x: torch.tanh(x) + 1,
)
SEVERAL = [
    inserting(
        "h = torch.relu(x); h * (h + 1)",
        lambda x: (h := torch.relu(x)) * (h + 1),
        lambda x: (h := torch.tanh(torch.relu(x))) * (h + 1),
        calls=4,
        count=1,
    ),
    inserting(
        "torch.relu(x) - torch.relu(x * 2)",
        lambda x: torch.relu(x) - torch.relu(x * 2),
        lambda x: torch.tanh(torch.relu(x)) - torch.tanh(torch.relu(x * 2)),
        calls=6,
        count=2,
        first_only=lambda x: torch.tanh(torch.relu(x)) - torch.relu(x * 2),
    ),
]
OTHER_CALLS = [
    inserting(
        "F.relu6(x) + torch.relu(x)",
        lambda x: F.relu6(x) + torch.relu(x),
        lambda x: F.relu6(x) + torch.tanh(torch.relu(x)),
        calls=4,
        count=1,
        warning="`F.relu6` is another function: it gets no tanh.",
    ),
    inserting(
        "torch.relu(x) - F.relu(x * 2)",
        lambda x: torch.relu(x) - F.relu(x * 2),
        lambda x: torch.tanh(torch.relu(x)) - F.relu(x * 2),
        calls=5,
        count=1,
        warning="Only `torch.relu` is asked for; the other target is `F.relu`, whatever the name of the node is.",
    ),
]


def ready_to_run(right: Run, program: Program) -> Run:
    """Return a check that `right` holds, and that the module which the pass makes of `program` runs its own graph."""

    def run(answer: GraphAnswer, draw: Draw) -> None:
        right(answer, draw)
        if not answer.transform(traced(program, draw)).recompiled:
            raise CheckFailedError(
                f"In the program {program.name} the graph is right, and the module still runs the code of the old one: "
                "call `recompile()` on the module after the last change of its graph."
            )

    return run


EXERCISE = Exercise(
    title="Insert a node behind another",
    kind=Kind.GRAPH,
    entry_point="insert_tanh",
    points=6,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends"),
    wall_s=30,
    hints=(
        "Look at who reads relu once the new node is there: print `relu.users` before you redirect anybody.",
        "Insert with `graph.inserting_after(node)`, then redirect all readers but one. "
        "`replace_all_uses_with` takes a function that says which readers to redirect.",
        "The function is the keyword `delete_user_cb`: it gets a reader and says True if it is to be redirected.",
    ),
    checks=(
        Check("one node more, and it reads relu", "one reader", 1, rewritten([ONE], continued=True)),
        Check("the module runs the new graph", "ready to run", 0.5, ready_to_run(rewritten([ONE]), ONE.program)),
        Check("several readers, several relus", "several", 1.5, rewritten(SEVERAL, continued=True)),
        Check("other calls stay", "look-alikes", 0.5, rewritten(OTHER_CALLS, together=True, continued=True)),
    ),
)
