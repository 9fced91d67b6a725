"""Hidden checks and controls of exercise 02.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import read_a_trace as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _overlapping(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, streams=2) for ranges in (3, 5)]


def _noisy(draw: Draw) -> list[visible.Trace]:
    return [visible.trace(draw, ranges, noise=True) for ranges in (4, 6)]


NEIGHBOURS = visible.reads("longest_gap_us", _overlapping, visible.gap_between_neighbours)
SUMS = visible.reads("launch_bound", _overlapping, visible.bound_by_sums, *visible.OTHER_RANGES)
ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("the longest gap of two streams", "two streams", 0.9, NEIGHBOURS),
        Check("launch-bound ranges of two streams", "two streams", 0.9, SUMS),
        Check(
            "the top kernel among other events",
            "other events",
            0.9,
            visible.reads("top_kernel", _noisy, *visible.OTHER_KERNELS),
        ),
        Check("the longest gap among other events", "other events", 0.9, visible.reads("longest_gap_us", _noisy)),
    ),
    controls=(
        ANSWERS.reference(8),
        Control(
            "an answer without looking",
            "def read_trace(trace):\n"
            "    return {'top_kernel': 'gemm_kernel', 'longest_gap_us': 0, 'launch_bound': []}\n",
            0,
        ),
        ANSWERS.edited("below two thirds", 5.5, ("2 * covered_us(first, last)", "1.5 * covered_us(first, last)")),
        ANSWERS.edited("gaps between neighbours", 7.1, ("max(reached, end)", "end")),
        ANSWERS.edited("one stream only", 8, ("first = max(first, min(end, last))", "pass"), below=True),
    ),
)
