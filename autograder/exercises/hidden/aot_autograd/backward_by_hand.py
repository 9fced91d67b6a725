"""Hidden checks and controls of exercise 08.5."""

from collections.abc import Iterator

import torch

from autograder.exercises.aot_autograd.backward_by_hand import gradient_right, inputs
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def _odd(draw: Draw) -> Iterator[Case]:
    for rows, width in ((1, 3), (129, 5), (2, 127)):
        yield inputs(draw, rows, width)


def _single(draw: Draw) -> Iterator[Case]:
    yield inputs(draw, 6, 32, dtype=torch.float32)


def _extreme_masks(draw: Draw) -> Iterator[Case]:
    yield inputs(draw, 4, 8, share=1.0)
    yield inputs(draw, 4, 8, share=0.05)


ALL = range(5)
ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("odd sizes", "odd sizes", 2, gradient_right(ALL, _odd)),
        Check("single precision", "precision", 1.5, gradient_right(ALL, _single)),
        Check("nothing dropped, nearly everything dropped", "masks", 1.5, gradient_right(ALL, _extreme_masks)),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("sums and roots", 12),  # 30 calls
        ANSWERS.file("a term for each statistic", 12),  # 39 calls, as the backward of a BatchNorm is often derived
        ANSWERS.file("autograd shortened", 12),  # 30 calls, too; the task calls it fair
        ANSWERS.file("autograd", 0),
        ANSWERS.file("vjp", 0),
    ),
    right_here=dict.fromkeys(("wrong in the first output only", "NaN"), "each gradient has a check of its own"),
)
