"""Hidden checks and controls of exercise 12.3."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.long_softmax import BLOCK, NAMES, NEAR, RIGHT, rows_of, shares
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def odd(draw: Draw) -> list[Case]:
    """Return rows that end one element before, at, and after a block, and rows of one element."""
    return [rows_of(draw, 3, BLOCK - 1), rows_of(draw, 2, BLOCK + 1), rows_of(draw, 4, 1), rows_of(draw, 1, 2 * BLOCK)]


def masked(draw: Draw) -> list[Case]:
    """Return rows that begin with more than a block of -inf, end with one, and have some in between."""
    x = draw.normal(3, 350)
    x[0, : draw.integer(BLOCK + 10, 200)] = -torch.inf
    x[1, draw.integer(100, 120) :] = -torch.inf
    x[2, :: draw.integer(2, 3)] = -torch.inf
    return [Case((x,), label="with -inf at the beginning, at the end, or in between")]


def views(draw: Draw) -> list[Case]:
    """Return a transposed matrix, and some columns of a wider one."""
    return [
        Case((draw.normal(200, 3).T,), label="with a transposed x"),
        Case((draw.normal(3, 400)[:, 50:350],), label="with some columns of a wider matrix"),
    ]


def rising(draw: Draw) -> list[Case]:
    """Return rows whose largest number is in the last block, or in the first one."""
    x = draw.normal(2, 400).sort(dim=-1).values * 20
    return [Case((x,), label="with rows that rise"), Case((x.flip(-1).clone(),), label="with rows that fall")]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("rows around a block", "odd sizes", 1, holds(odd, shares, NAMES, RIGHT)),
        Check("elements that are -inf", "-inf", 1.4, holds(masked, shares, NAMES, RIGHT)),
        Check("views with strides", "strides", 0.8, holds(views, shares, NAMES, RIGHT)),
        Check("accesses of views with strides", "strides", 0.6, holds(views, shares, NAMES, inside, NEAR)),
        Check("rows that rise and fall", "large values", 1, holds(rising, shares, NAMES, RIGHT)),
    ),
    controls=(ANSWERS.reference(12),),
)
