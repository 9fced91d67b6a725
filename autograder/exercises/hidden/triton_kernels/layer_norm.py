"""Hidden checks and controls of exercise 12.4."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.layer_norm import (
    BACKWARD,
    BACKWARD_NEAR,
    BACKWARD_RIGHT,
    FORWARD,
    FORWARD_RIGHT,
    GRADIENTS,
    backward_case,
    backward_of,
    forward_case,
    forward_of,
    gradients,
    many_rows,
    normed,
)
from autograder.host.checks.kernel_checks import apart, holds, loads_at_most
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def far(draw: Draw) -> list[Case]:
    """Return rows whose mean is large beside their deviation."""
    x = draw.normal(4, 96) + draw.choice((100.0, 200.0, -150.0))
    return [forward_case(x, draw, "with a mean a hundred times the deviation")]


def odd_forward(draw: Draw) -> list[Case]:
    """Return one row, and rows of odd lengths."""
    return [forward_of(1, 127, draw), forward_of(3, 129, draw), forward_of(draw.integer(7, 11), 3, draw)]


def odd_backward(draw: Draw) -> list[Case]:
    """Return one row, and a number of rows that no number of programs divides."""
    return [backward_of(1, 65, draw), backward_of(draw.choice((17, 19, 23)), 33, draw)]


def forward_views(draw: Draw) -> list[Case]:
    """Return a transposed matrix, and some columns of a wider one."""
    cut = forward_case(draw.normal(5, 120)[:, 30:94], draw, "with some columns of a wider matrix as x")
    return [forward_case(draw.normal(50, 6).T, draw, "with a transposed x"), cut]


def backward_views(draw: Draw) -> list[Case]:
    """Return a transposed gradient, and the gradient of a sum, which is one number at every place."""
    x = draw.normal(9, 40)
    transposed = backward_case(draw.normal(40, 9).T, x, draw, "with a transposed grad")
    return [transposed, backward_case(draw.normal(1, 1).expand(9, 40), x, draw, "with an expanded grad, of strides 0")]


def half(draw: Draw) -> list[Case]:
    """Return a matrix in half precision."""
    return [forward_case((draw.normal(6, 80) * 8).half(), draw, "with float16")]


def _loads(case: Case) -> int:
    return int(case.args[0].numel()) * 5 // 2


ANSWERS = Answers(__name__)
TWICE = (
    "each of grad and x once, besides weight, statistics and a few partial sums. Compute grad_x and the partial sums in one "
    "kernel, with fewer programs than rows."
)

HIDDEN = HiddenPart(
    checks=(
        Check("forward: a large mean", "large values", 1.4, holds(far, normed, FORWARD, FORWARD_RIGHT)),
        Check("forward: odd sizes", "odd sizes", 0.8, holds(odd_forward, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "backward: odd sizes",
            "odd sizes",
            1,
            holds(odd_backward, gradients, BACKWARD, BACKWARD_RIGHT, function=GRADIENTS),
        ),
        Check("forward: views with strides", "strides", 0.8, holds(forward_views, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "backward: views with strides",
            "strides",
            0.8,
            holds(backward_views, gradients, BACKWARD, BACKWARD_RIGHT, function=GRADIENTS),
        ),
        Check("forward: half precision", "half precision", 0.8, holds(half, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "backward: sums in a fixed order",
            "determinism",
            1.2,
            holds(many_rows, gradients, BACKWARD, apart, BACKWARD_NEAR, function=GRADIENTS),
        ),
        Check(
            "backward: loads of elements",
            "loads",
            1.2,
            holds(many_rows, gradients, BACKWARD, BACKWARD_NEAR, loads_at_most(_loads, TWICE), function=GRADIENTS),
        ),
    ),
    controls=(ANSWERS.reference(18),),
)
