"""Exercise 11.5: the check behind a loose pattern, which accepts bias and GELU and refuses what looks like it."""

import math

import torch
from torch.nn import functional as F

from autograder.exercises.programs.aten_programs import aten_program
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.graph import rewrites
from autograder.host.traced import TensorSpec

OPERATOR = "torch.ops.course_lib.bias_gelu"
WIDTH = 8
ROWS, BIAS = TensorSpec((4, WIDTH)), TensorSpec((WIDTH,))
MISSED = (
    "x may have any rank and the bias one dimension; numbers may differ in the last digit from what you wrote, so "
    "compare them with math.isclose."
)

PLAIN = aten_program("F.gelu(x + b)", lambda x, b: F.gelu(x + b), (ROWS, BIAS), missed=MISSED)
BY_HAND = aten_program(
    "h = x + b; 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))",
    lambda x, b: ((h := x + b) * 0.5) * (torch.erf(h * (1 / math.sqrt(2))) + 1),
    (ROWS, BIAS),
    missed=MISSED,
)
# in each program one sum is right, so that a check that refuses everything earns nothing for its refusals
DOUBLED = aten_program(
    "F.gelu(x + b) + F.gelu(torch.add(x, b, alpha=2))",
    lambda x, b: F.gelu(x + b) + F.gelu(torch.add(x, b, alpha=2)),
    (ROWS, BIAS),
    reason="With alpha=2 the sum is x + 2 b, and the pattern does not look at keyword arguments.",
)
RETURNED = aten_program(
    "return F.gelu(x + b), F.gelu(h), h",
    lambda x, b: (F.gelu(x + b), F.gelu(h := torch.add(x, b)), h),
    (ROWS, BIAS),
    reason="The second sum is also an output: it stays, and a fused call would compute it again.",
)

EXERCISE = Exercise(
    title="Refuse look-alikes",
    kind=Kind.GRAPH,
    entry_point="fuse_bias_gelu",
    points=15,
    masked=("course_lib.fusion", "course_lib.schedule"),  # their guards are such checks
    wall_s=120,
    hints=(
        "Print `match.kwargs` and `match.nodes` for the plain program. What of them does the pattern leave open?",
        "Four questions: is any keyword argument set, does a node outside the match read a node in the middle, are "
        "the three numbers those of GELU, and do shape and dtype of x and bias suit the operator?",
        'For a node, `node.meta["val"]` is its fake tensor. `match.nodes[-1]` is the last node; for every other node '
        "`set(node.users) <= set(match.nodes)` must hold. A number in the place of the bias is no `fx.Node`.",
    ),
    checks=(
        Check("`F.gelu(x + b)` is fused", "pattern", 1.0, rewrites([PLAIN], OPERATOR, continued=True)),
        Check("GELU by hand is fused", "spellings", 1.0, rewrites([BY_HAND], OPERATOR, continued=True)),
        Check("a sum with alpha stays", "refusals", 2.0, rewrites([DOUBLED], OPERATOR, continued=True, together=True)),
        Check(
            "a sum that is returned stays",
            "refusals",
            2.0,
            rewrites([RETURNED], OPERATOR, together=True, continued=True),
        ),
    ),
)
