"""Exercise 11.5: the check behind a loose pattern, which accepts bias and GELU and refuses what looks like it."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.programs.aten_programs import aten_program
from autograder.host.checks.fusion_checks import rewrites
from autograder.host.exercise import Check, Exercise, Kind
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
# in each program a sum is right, so that a check that refuses everything earns nothing for its refusals; sometimes it
# comes first, sometimes last, and sometimes there are two, so that nobody earns anything by places
DOUBLED = aten_program(
    "F.gelu(x + b) + F.gelu(torch.add(x, b, alpha=2))",
    lambda x, b: F.gelu(x + b) + F.gelu(torch.add(x, b, alpha=2)),
    (ROWS, BIAS),
    reason="With alpha=2 the sum is x + 2 b, and the pattern does not look at keyword arguments.",
)
BARELY = 1 + 2**-52
"""The number after 1: who compares results in place of graphs sees no difference."""
BARELY_MORE = aten_program(
    "F.gelu(x + b) * F.gelu(torch.add(x, b, alpha=1 + 2**-52))",
    lambda x, b: F.gelu(x + b) * F.gelu(torch.add(x, b, alpha=BARELY)),
    (ROWS, BIAS),
    reason="alpha is not 1. Results that agree on some numbers are no reason to rewrite; read the match.",
)
DOUBLED_FIRST = aten_program(
    "F.gelu(torch.add(x, b, alpha=3)) - F.gelu(x + b)",
    lambda x, b: F.gelu(torch.add(x, b, alpha=3)) - F.gelu(x + b),
    (ROWS, BIAS),
    reason="With alpha=3 the sum is x + 3 b, and the pattern does not look at keyword arguments.",
)
RETURNED = aten_program(
    "return F.gelu(x + b), F.gelu(h), h, F.gelu(2 * x + b)",
    lambda x, b: (F.gelu(x + b), F.gelu(h := torch.add(x, b)), h, F.gelu(2 * x + b)),
    (ROWS, BIAS),
    2,
    reason="The second sum is also an output: it stays, and a fused call would compute it again.",
)


def times_gelu(half: float, scale: float, one: float, *, right_first: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a product of GELU and of what has its form, with other numbers."""

    def other(x: Tensor, b: Tensor) -> Tensor:
        h = x + b
        return (h * half) * (torch.erf(h * scale) + one)

    if right_first:
        return lambda x, b: F.gelu(x + b) * other(x, b)
    return lambda x, b: other(x, b) * F.gelu(x + b)


NUMBERS = [
    aten_program(
        f"{name} of GELU is {value}",
        times_gelu(*numbers, right_first=right_first),
        (ROWS, BIAS),
        reason=f"In GELU {name} is {right}.",
    )
    for name, value, right, numbers, right_first in (
        ("the factor in front", "1.0", "0.5", (1.0, math.sqrt(0.5), 1), False),
        ("the factor in front", "0.500001", "0.5", (0.500001, math.sqrt(0.5), 1), True),
        ("the scale inside erf", "0.5", "the root of 0.5", (0.5, 0.5, 1), False),
        ("the scale inside erf", "0.7", "the root of 0.5", (0.5, 0.7, 1), True),
        ("the summand behind erf", "2", "1", (0.5, math.sqrt(0.5), 2), False),
    )
] + [
    aten_program(
        "torch.add(torch.erf(h * sqrt(0.5)), 1, alpha=2) is no GELU",
        lambda x, b: ((h := x + b) * 0.5) * torch.add(torch.erf(h * math.sqrt(0.5)), 1, alpha=2) + F.gelu(x + b),
        (ROWS, BIAS),
        reason="The second sum of the match has an alpha, too.",
    )
]

NO_VECTOR = aten_program(
    "F.gelu(x + y) * F.gelu(x + b)",
    lambda x, y, b: F.gelu(x + y) * F.gelu(x + b),
    (ROWS, ROWS, BIAS),
    reason="y has the shape of x; a bias has one number for each column.",
)
ONE_ELEMENT = aten_program(
    "F.gelu(x + b) * F.gelu(x + e)",
    lambda x, e, b: F.gelu(x + b) * F.gelu(x + e),
    (ROWS, TensorSpec((1,)), BIAS),
    reason="e has one element; a bias has one number for each column.",
)
TWO_DTYPES = aten_program(
    "F.gelu(x + d) * F.gelu(x + b)",
    lambda x, d, b: F.gelu(x + d) * F.gelu(x + b),
    (ROWS, TensorSpec((WIDTH,), torch.float64), BIAS),
    reason="d is float64: the sum is float64, and x is not.",
)

EXERCISE = Exercise(
    title="Refuse look-alikes",
    kind=Kind.GRAPH,
    entry_point="fuse_bias_gelu",
    points=15,
    masked=("course_lib.fusion", "course_lib.schedule"),
    wall_s=120,
    hints=(
        "Print `match.kwargs` and `match.nodes` for the plain program. What of them does the pattern leave open?",
        "Four questions: is any keyword argument set, does a node outside the match read a node in the middle, are "
        "the three numbers those of GELU, and do shape and dtype of x and bias suit the operator?",
        'For a node, `node.meta["val"]` is its fake tensor. `match.nodes[-1]` is the last node; for every other node '
        "`set(node.users) <= set(match.nodes)` must hold. A number in the place of the bias is no `fx.Node`.",
    ),
    checks=(
        Check("`F.gelu(x + b)` is fused", "pattern", 1, rewrites([PLAIN], OPERATOR, continued=True)),
        Check("GELU by hand is fused", "spellings", 0.5, rewrites([BY_HAND], OPERATOR, continued=True)),
        Check(
            "a sum with alpha stays",
            "refusals",
            2,
            rewrites([DOUBLED, DOUBLED_FIRST, BARELY_MORE], OPERATOR, continued=True, together=True),
        ),
        Check(
            "a sum that is returned stays",
            "refusals",
            1.5,
            rewrites([RETURNED], OPERATOR, together=True, continued=True),
        ),
        Check("other numbers stay", "literals", 2, rewrites(NUMBERS, OPERATOR, together=True)),
        Check(
            "other second operands stay",
            "look-alikes",
            1,
            rewrites([NO_VECTOR, ONE_ELEMENT, TWO_DTYPES], OPERATOR, together=True),
        ),
    ),
)
