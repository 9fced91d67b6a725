"""Hidden checks and controls of exercise 12.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.masked_blend import NAMES, NEAR, RIGHT, blended, of_lengths
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case


def views(draw: Draw) -> list[Case]:
    """Return vectors whose elements are not neighbours: every second and third element, and one column of a matrix."""
    n = draw.choice((130, 257))
    apart = Case((draw.normal(2 * n)[::2], draw.normal(3 * n)[::3], 0.25), label="with views of strides 2 and 3")
    column = Case((draw.normal(n, 5)[:, 2], draw.normal(n), 0.75), label="with a column of a matrix as x")
    return [apart, column]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "lengths around a block",
            "odd sizes",
            0.6,
            holds(of_lengths((1,), (127, 129), (513, 700)), blended, NAMES, RIGHT),
        ),
        Check("no element at all", "odd sizes", 0.2, holds(of_lengths((0,), (3,)), blended, NAMES, RIGHT)),
        Check("views with strides", "strides", 1, holds(views, blended, NAMES, RIGHT)),
        Check("accesses of views with strides", "strides", 0.6, holds(views, blended, NAMES, inside, NEAR)),
    ),
    controls=(ANSWERS.reference(6),),
)
