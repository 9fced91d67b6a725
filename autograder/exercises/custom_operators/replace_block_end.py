"""Exercise 11.2: replace the end of a BERT block by one operator, with Inductor's `register_replacement`."""

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.programs.aten_programs import aten_program
from autograder.host.checks.fusion_checks import rewrites
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.traced import Program, TensorSpec

OPERATOR = "torch.ops.course_lib.residual_layer_norm"
WIDTH = 8
ROWS, COLUMN = TensorSpec((4, WIDTH)), TensorSpec((WIDTH,))
INPUTS = (ROWS, ROWS, COLUMN, COLUMN)
MISSED = (
    "Is the pattern traced with `fwd_only`, and are its example inputs of float32? Shapes are looked at again for each "
    "match; numbers such as eps must be equal, unless they are arguments of the pattern."
)


def block_end(x: Tensor, r: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    """Return the end of a BERT block in evaluation mode: (..., 8) -> (..., 8)."""
    return F.layer_norm(x + r, (WIDTH,), w, b, eps)


def with_eps(eps: float) -> Program:
    """Return the block end with another eps."""
    return aten_program(
        f"F.layer_norm(x + r, (8,), w, b, eps={eps:g})",
        lambda x, r, w, b: block_end(x, r, w, b, eps),
        INPUTS,
        reason=f"eps is {eps:g} in the program; the operator takes it as its last argument.",
        missed="eps is a number in the graph. Make it an argument of pattern and replacement, see `scalar_workaround`.",
    )


LITERAL = aten_program("F.layer_norm(x + r, (8,), w, b)", block_end, INPUTS, missed=MISSED)
DOUBLED = aten_program(
    "block_end(x, r) + F.layer_norm(torch.add(x, r, alpha=2), (8,), w, b)",
    lambda x, r, w, b: block_end(x, r, w, b) + F.layer_norm(torch.add(x, r, alpha=2), (WIDTH,), w, b),
    INPUTS,
    reason="With alpha=2 the sum is x + 2 r. The matcher drops keyword arguments that the pattern does not have.",
)
DOUBLED_FIRST = aten_program(
    "F.layer_norm(torch.add(x, r, alpha=3), (8,), w, b) - block_end(x, r)",
    lambda x, r, w, b: F.layer_norm(torch.add(x, r, alpha=3), (WIDTH,), w, b) - block_end(x, r, w, b),
    INPUTS,
    reason="With alpha=3 the sum is x + 3 r. The matcher drops keyword arguments that the pattern does not have.",
)

SPREAD = aten_program(
    "block_end(x, r) + F.layer_norm(x + m, (8,), w, b)",
    lambda x, r, m, w, b: block_end(x, r, w, b) + block_end(x, m, w, b),
    (ROWS, ROWS, TensorSpec((1, WIDTH)), COLUMN, COLUMN),
    reason="m of shape (1, 8) is spread over the rows: the operator takes two operands of one shape.",
)

EXERCISE = Exercise(
    title="Replace the end of a block",
    kind=Kind.GRAPH,
    entry_point="fuse_block_ends",
    points=12,
    masked=("course_lib.fusion", "course_lib.schedule"),
    wall_s=120,
    hints=(
        "Print the decomposed graph of the pattern. Which nodes are left of LayerNorm, and where is eps?",
        "Pattern and replacement are two functions of (x, residual, weight, bias, eps). Their examples are four "
        'tensors; eps is no example: it goes into `scalar_workaround={"eps": ...}` with a number that is nowhere else.',
        "The check gets each match with its real nodes: refuse if any of `match.nodes` has `kwargs` with an alpha, and "
        'unless x, residual, weight and bias are nodes whose `meta["val"]` suit the operator.',
    ),
    checks=(
        Check("the block end becomes one call", "pattern", 2, rewrites([LITERAL], OPERATOR, continued=True)),
        Check("another eps is kept", "eps", 2, rewrites([with_eps(1e-3)], OPERATOR, continued=True)),
        Check(
            "a sum with alpha stays",
            "refusals",
            2,
            rewrites([DOUBLED, DOUBLED_FIRST], OPERATOR, continued=True, together=True),
        ),
        Check("a row that is spread stays", "look-alikes", 1, rewrites([SPREAD], OPERATOR)),
    ),
)
