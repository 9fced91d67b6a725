"""Exercise 05.1: insert a node behind another one without making it read itself."""

from collections.abc import Callable, Sequence

import torch

from autograder.exercises.lessons import exercise_id
from autograder.host.checks.rewrite_checks import Rewriting, WrongTurn, rewritten
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.traced import Program, TensorSpec

Tensor = torch.Tensor
ROWS = TensorSpec((3, 4))
SETUP = """\
import torch
from torch import fx, nn
from torch.nn import functional as F
"""

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
) -> Rewriting:
    """Return a program, and the same with a tanh after each relu; `calls` and `count` are the calls and tanhs then."""
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
    )


def _one(x: Tensor) -> Tensor:
    return torch.relu(x) + 1


def _one_right(x: Tensor) -> Tensor:
    return torch.tanh(torch.relu(x)) + 1


def _two_readers(x: Tensor) -> Tensor:
    h = torch.relu(x)
    return h * (h + 1)


def _two_readers_right(x: Tensor) -> Tensor:
    h = torch.tanh(torch.relu(x))
    return h * (h + 1)


def _two_relus(x: Tensor) -> Tensor:
    return torch.relu(x) - torch.relu(x * 2)


def _two_relus_right(x: Tensor) -> Tensor:
    return torch.tanh(torch.relu(x)) - torch.tanh(torch.relu(x * 2))


ONE = inserting("torch.relu(x) + 1", _one, _one_right, calls=3, count=1, replaced=lambda x: torch.tanh(x) + 1)

EXERCISE = Exercise(
    id=exercise_id(__name__),
    title="Insert a node behind another",
    kind=Kind.GRAPH,
    entry_point="insert_tanh",
    points=6,
    setup=SETUP,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends"),
    wall_s=30,
    hints=(
        "Look at who reads relu once the new node is there: print `relu.users` before you redirect anybody.",
        "Insert with `graph.inserting_after(node)`, then redirect all readers but one. "
        "`replace_all_uses_with` takes a function that says which readers to redirect.",
        "The function is the keyword `delete_user_cb`: it gets a reader and says True if it is to be redirected.",
    ),
    checks=(
        Check("one node more, and it reads relu", "one reader", 2, rewritten([ONE])),
        Check(
            "several readers, several relus",
            "several",
            1.6,
            rewritten(
                [
                    inserting("h = torch.relu(x); h * (h + 1)", _two_readers, _two_readers_right, calls=4, count=1),
                    inserting(
                        "torch.relu(x) - torch.relu(x * 2)",
                        _two_relus,
                        _two_relus_right,
                        calls=6,
                        count=2,
                        first_only=lambda x: torch.tanh(torch.relu(x)) - torch.relu(x * 2),
                    ),
                ]
            ),
        ),
    ),
)
