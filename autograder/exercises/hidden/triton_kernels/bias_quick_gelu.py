"""Hidden checks and controls of exercise 12.2."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.bias_quick_gelu import NAMES, NEAR, RIGHT, biased, matrix
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def odd(draw: Draw) -> list[Case]:
    """Return matrices of one row, of one column, and of other odd sizes."""
    return [
        matrix(draw, *draw.choice(((1, 127), (3, 129)))),
        matrix(draw, draw.integer(17, 33), 1),
        matrix(draw, 127, 3),
    ]


def views(draw: Draw) -> list[Case]:
    """Return a transposed matrix, some columns of a wider one, and every second row, with a bias of a stride."""
    transposed = Case((draw.normal(40, 9).T, draw.normal(40)), label="with a transposed x")
    cut = Case((draw.normal(7, 90)[:, 20:70], draw.normal(50)), label="with some columns of a wider matrix as x")
    sparse = Case(
        (draw.normal(10, 66)[::2], draw.normal(132)[::2]), label="with every second row, and a bias of stride 2"
    )
    return [transposed, cut, sparse]


def half(draw: Draw) -> list[Case]:
    """Return a matrix in half precision."""
    return [matrix(draw, 12, draw.integer(60, 70), torch.float16)]


def extreme(draw: Draw) -> list[Case]:
    """Return sums of which the exponential overflows, in half precision and single."""
    large = draw.normal(4, 48, scale=400)
    return [Case((large, draw.normal(48)), label="with sums of some hundreds")]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("one row, one column", "odd sizes", 0.8, holds(odd, biased, NAMES, RIGHT)),
        Check("views with strides", "strides", 0.8, holds(views, biased, NAMES, RIGHT)),
        Check("accesses of views with strides", "strides", 0.6, holds(views, biased, NAMES, inside, NEAR)),
        Check("half precision", "half precision", 1, holds(half, biased, NAMES, RIGHT)),
        Check("large sums", "large values", 0.6, holds(extreme, biased, NAMES, RIGHT)),
    ),
    controls=(ANSWERS.reference(10),),
)
