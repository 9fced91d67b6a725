"""Hidden checks and controls of exercise 05.1."""

import torch
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.fix_the_self_cycle import inserting
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.checks.rewrite_checks import rewritten
from autograder.host.exercise import Check, HiddenPart

Tensor = torch.Tensor


def _by_name(x: Tensor) -> Tensor:
    return torch.add(input=x, other=torch.relu(x))


def _by_name_right(x: Tensor) -> Tensor:
    return torch.add(input=x, other=torch.tanh(torch.relu(x)))


def _in_a_list(x: Tensor) -> Tensor:
    h = torch.relu(x)
    return torch.cat([h, x, h], dim=1)


def _in_a_list_right(x: Tensor) -> Tensor:
    h = torch.tanh(torch.relu(x))
    return torch.cat([h, x, h], dim=1)


def _returned(x: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.relu(x)
    return h, h * 2


def _returned_right(x: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.tanh(torch.relu(x))
    return h, h * 2


def _squared(x: Tensor) -> Tensor:
    h = torch.relu(x)
    return h * h


def _squared_right(x: Tensor) -> Tensor:
    h = torch.tanh(torch.relu(x))
    return h * h


def _other(x: Tensor) -> Tensor:
    return torch.tanh(F.silu(x)) + torch.relu(x)


def _other_right(x: Tensor) -> Tensor:
    return torch.tanh(F.silu(x)) + torch.tanh(torch.relu(x))


READERS = [
    inserting("torch.add(input=x, other=torch.relu(x))", _by_name, _by_name_right, calls=3, count=1),
    inserting("h = torch.relu(x); torch.cat([h, x, h])", _in_a_list, _in_a_list_right, calls=3, count=1),
    inserting("h = torch.relu(x); return h, h * 2", _returned, _returned_right, calls=3, count=1),
    inserting("h = torch.relu(x); h * h", _squared, _squared_right, calls=3, count=1),
    inserting("torch.relu(x)", lambda x: torch.relu(x), lambda x: torch.tanh(torch.relu(x)), calls=2, count=1),
]
CHAINS = [
    inserting(
        "torch.relu(torch.relu(x))",
        lambda x: torch.relu(torch.relu(x)),
        lambda x: torch.tanh(torch.relu(torch.tanh(torch.relu(x)))),
        calls=4,
        count=2,
        first_only=lambda x: torch.relu(torch.tanh(torch.relu(x))),
    ),
    inserting("torch.tanh(F.silu(x)) + torch.relu(x)", _other, _other_right, calls=5, count=2),
]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("readers of every kind", "readers", 1.4, rewritten(READERS)),
        Check("chains and look-alikes", "chains", 1, rewritten(CHAINS)),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited(
            "the new node reads itself",
            0,
            (", delete_user_cb=lambda user, new=new: user is not new", ""),
            ("graph.lint()", "pass"),
        ),
        ANSWERS.edited("nobody reads it", 6, ("user is not new", "False"), below=True),
    ),
    right_here={
        "swapped operands": "it spoils calls of the course's operators, of which there are none",
        "one precision lower": "as above",
    },
    equivalent={
        "node.op == 'call_function' and node.target is torch.relu -> node.target is torch.relu": "no other op "
        "has a function for target",
        "graph.lint() -> pass": "lint only looks at what was built",
        "graph_module.recompile() -> pass": "nodes cross to the host, not generated code",
    },
)
