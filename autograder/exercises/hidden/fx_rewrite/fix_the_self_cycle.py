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
LOOK_ALIKES = [  # inputs and functions whose names begin like that of a relu
    inserting(
        "torch.relu(relu) - F.leaky_relu(relu)",
        lambda relu: torch.relu(relu) - F.leaky_relu(relu),
        lambda relu: torch.tanh(torch.relu(relu)) - F.leaky_relu(relu),
        calls=4,
        count=1,
    ),
    inserting(
        "F.relu6(relu_first) + torch.relu(relu_first)",
        lambda relu_first: F.relu6(relu_first) + torch.relu(relu_first),
        lambda relu_first: F.relu6(relu_first) + torch.tanh(torch.relu(relu_first)),
        calls=4,
        count=1,
    ),
    inserting(
        "F.relu(relu * 2) + torch.relu(relu).relu()",
        lambda relu: F.relu(relu * 2) + torch.relu(relu).relu(),
        lambda relu: F.relu(relu * 2) + torch.tanh(torch.relu(relu)).relu(),
        calls=6,
        count=1,
    ),
]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("readers of every kind", "readers", 1.5, rewritten(READERS)),
        Check("chains", "chains", 0.5, rewritten(CHAINS)),
        Check("other calls stay, whatever they are called", "look-alikes", 0.5, rewritten(LOOK_ALIKES, together=True)),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited(
            "the new node reads itself",
            0,
            (", delete_user_cb=lambda user, new=new: user is not new", ""),
            ("graph.lint()", "pass"),
        ),
        ANSWERS.edited(
            "by the name of the node",
            3.6,
            ("node.op == 'call_function' and node.target is torch.relu", "node.name.startswith('relu')"),
        ),
        ANSWERS.edited(
            "by the name of a call", 3.6, ("node.target is torch.relu", "node.name.split('_')[0] == 'relu'")
        ),
        ANSWERS.edited("not compiled again", 5.5, ("graph_module.recompile()", "pass")),
        ANSWERS.edited(
            "writes the text of the code alone",
            5.5,
            ("graph_module.recompile()", "graph_module._code = graph.python_code('self').src"),
        ),
        ANSWERS.edited(
            "traced again",
            6,
            (
                "graph = graph_module.graph",
                "graph_module = fx.symbolic_trace(graph_module); graph = graph_module.graph",
            ),
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
