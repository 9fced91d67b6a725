"""Hidden checks and controls of exercise 05.1."""

import torch
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.fix_the_self_cycle import inserting
from autograder.exercises.hidden.answer_files import NO_OPERATORS, NOT_SEEN, Answers
from autograder.host.checks.rewrite_checks import rewritten
from autograder.host.exercise import Check, HiddenPart

READERS = [
    inserting(
        "torch.add(input=x, other=torch.relu(x))",
        lambda x: torch.add(input=x, other=torch.relu(x)),
        lambda x: torch.add(input=x, other=torch.tanh(torch.relu(x))),
        calls=3,
        count=1,
    ),
    inserting(
        "h = torch.relu(x); torch.cat([h, x, h])",
        lambda x: torch.cat([h := torch.relu(x), x, h], dim=1),
        lambda x: torch.cat([h := torch.tanh(torch.relu(x)), x, h], dim=1),
        calls=3,
        count=1,
    ),
    inserting(
        "h = torch.relu(x); return h, h * 2",
        lambda x: (h := torch.relu(x), h * 2),
        lambda x: (h := torch.tanh(torch.relu(x)), h * 2),
        calls=3,
        count=1,
    ),
    inserting(
        "h = torch.relu(x); h * h",
        lambda x: (h := torch.relu(x)) * h,
        lambda x: (h := torch.tanh(torch.relu(x))) * h,
        calls=3,
        count=1,
    ),
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
    inserting(
        "torch.tanh(F.silu(x)) + torch.relu(x)",
        lambda x: torch.tanh(F.silu(x)) + torch.relu(x),
        lambda x: torch.tanh(F.silu(x)) + torch.tanh(torch.relu(x)),
        calls=5,
        count=2,
    ),
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
    right_here=NO_OPERATORS,
    equivalent={
        "node.op == 'call_function' and node.target is torch.relu -> node.target is torch.relu": "no other op "
        "has a function for target",
        **NOT_SEEN,
    },
)
