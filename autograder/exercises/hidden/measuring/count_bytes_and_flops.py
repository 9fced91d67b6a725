"""Hidden checks and controls of exercise 02.3."""

from collections.abc import Iterator

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring.count_bytes_and_flops import (
    ELEMENTS,
    FOUR,
    IN_PLACE,
    STORED,
    VIEWS_COST,
    Question,
    Steps,
    counts,
    sizes,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _in_place(draw: Draw) -> Iterator[Question]:
    m, n = sizes(draw, 2)
    one = 4 * m * n
    yield Question("add_", ((m, n), (m, n)), (("add_", "%0", "%1"),), 3 * one, wrong=((0, IN_PLACE),))
    yield Question("relu_", ((m, n),), (("relu_", "%0"),), 2 * one, wrong=((0, IN_PLACE),))
    k = draw.integer(1, n - 1)
    steps = (("slice", "%0", 1, 0, k), ("mul_", "%2", "%1"))
    whole = 4 * (m * n + m * k)  # of the slice, if views cost
    wrong = ((0, IN_PLACE), (5 * 4 * m * k, VIEWS_COST), (3 * 4 * m * k + whole, VIEWS_COST))
    yield Question("mul_ on a slice", ((m, n), (m, k)), steps, 3 * 4 * m * k, wrong=wrong)


def _broadcast(draw: Draw) -> Iterator[Question]:
    m, n, b = sizes(draw, 3)
    b = b if b > 3 else 41  # with 3, two known mistakes would count equally many bytes
    yield Question("a column plus a row", ((m, 1), (1, n)), (("add", "%0", "%1"),), 4 * (m + n + m * n))
    steps: Steps = (("expand", "%0", [b, n]), ("mul", "%2", "%1"))
    right = 4 * (n + 2 * b * n)
    wrong = ((3 * 4 * b * n, STORED), (right + 2 * 4 * n, VIEWS_COST), (right + 4 * (n + b * n), VIEWS_COST))
    yield Question("an expanded row times a matrix", ((1, n), (b, n)), steps, 4 * (n + 2 * b * n), wrong=wrong)
    steps = (("expand", "%0", [b, m, n]), ("exp", "%1"))
    right = 4 * (m * n + b * m * n)
    wrong = ((8 * b * m * n, STORED), (right + 8 * m * n, VIEWS_COST), (right + right, VIEWS_COST))
    yield Question("exp of an expanded matrix", ((m, n),), steps, 4 * (m * n + b * m * n), wrong=wrong)


def _taken(elements: int) -> tuple[tuple[int, str], ...]:
    """Return the wrong totals of tensors of several types: every element taken for one byte, or for four."""
    return ((elements, ELEMENTS), (4 * elements, FOUR))


def _several_outputs(draw: Draw) -> Iterator[Question]:
    m, n = sizes(draw, 2)
    n += n % 2
    moved = 4 * m * n + 4 * m + 8 * m
    yield Question("max with its places", ((m, n),), (("max", "%0", 1),), moved, wrong=_taken(m * n + 2 * m))
    yield Question("variance and mean", ((m, n),), (("var_mean", "%0", [1]),), 4 * m * n + 2 * 4 * m)
    steps = (("split", "%0", n // 2, 1), ("add", "%1.0", "%1.1"))
    right = 3 * 4 * m * (n // 2)
    wrong = ((right + 2 * 4 * m * n, VIEWS_COST),)
    yield Question("the halves of a split, added", ((m, n),), steps, right, wrong=wrong)
    moved = 4 * m * n + 4 * m * n + 8 * m * n
    yield Question("sort", ((m, n),), (("sort", "%0", 1),), moved, wrong=_taken(3 * m * n))


def _other_types(draw: Draw) -> Iterator[Question]:
    m, k, n = sizes(draw, 3)
    for dtype, item in (("bfloat16", 2), ("float64", 8)):
        moved = item * (m * k + k * n + m * n)
        yield Question("mm", ((m, k), (k, n)), (("mm", "%0", "%1"),), moved, 2 * m * k * n, dtype)
        steps = (("gt", "%0", "%1"), ("where", "%2", "%0", "%1"))
        moved = (2 * item + 1) * m * n + (1 + 3 * item) * m * n
        yield Question("the larger of two", ((m, n), (m, n)), steps, moved, 0, dtype, _taken(7 * m * n))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("operators that write in place", "in place", 1.5, counts(_in_place, "bytes", counted=(IN_PLACE,))),
        Check(
            "operands that are broadcast or expanded",
            "broadcasting",
            1.5,
            counts(_broadcast, "bytes", counted=(STORED,)),
        ),
        Check("operators with several outputs", "several outputs", 1.5, counts(_several_outputs, "bytes")),
        Check(
            "two and eight bytes, and truth values",
            "types",
            1.5,
            counts(_other_types, "bytes", "flops", counted=(FOUR,)),
        ),
    ),
    controls=(
        ANSWERS.reference(14),
        ANSWERS.edited(
            "views that cost",
            12,
            ("any((t.untyped_storage().data_ptr() not in storages for t in writes))", "True"),
        ),
        Control("no counting", "def count(question):\n    return {'bytes': 4096, 'flops': 2048}\n", 0),
    ),
)
