"""Hidden checks and controls of exercise 12.3."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.long_softmax import APART, BLOCK, NAMES, NEAR, RIGHT, rows_of, shares
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
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
    """Return rows whose largest number is in the last block, or in the first one, and rows far below zero."""
    x = draw.normal(2, 400).sort(dim=-1).values * 20
    x[:, -draw.integer(20, 50) :] += draw.choice(APART)
    low = draw.normal(2, 300) - draw.choice(APART)
    return [
        Case((x,), label="with rows that rise"),
        Case((x.flip(-1).clone(),), label="with rows that fall"),
        Case((low,), label="with numbers below minus a thousand"),
    ]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("rows around a block", "odd sizes", 1, holds(odd, shares, NAMES, RIGHT)),
        Check("elements that are -inf", "-inf", 1.5, holds(masked, shares, NAMES, RIGHT)),
        Check("views with strides", "strides", 0.5, holds(views, shares, NAMES, RIGHT)),
        Check("accesses of views with strides", "strides", 0.5, holds(views, shares, NAMES, inside, NEAR)),
        Check("rows that rise and fall", "large values", 1, holds(rising, shares, NAMES, RIGHT)),
    ),
    equivalent={
        "shift = tl.where(new == -float('inf'), 0.0, new): 0.0 -> 1.0": "each exponential of -inf less it is 0",
        "total = 0.0: 0.0 -> 1.0": "the first block multiplies it by exp(-inf)",
        "tl.max(x, axis=0) -> tl.max(x)": "a block of one dimension has one axis",
        "torch.empty(x.shape, dtype=x.dtype, device=x.device) -> "
        "torch.empty(x.shape, dtype=x.dtype)": "a CPU is the only device",
    },
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("lanes of their own", 12),
        ANSWERS.file("two kernels", 12),
        ANSWERS.file("three passes", 12, below=True),
        ANSWERS.file("long rows by a sample", 9),
        ANSWERS.edited("blocks of 32", 12, ("BLOCK=128", "BLOCK=32")),
        ANSWERS.edited("a large negative number first", 12, ("largest = -float('inf')", "largest = -1e+30")),
        ANSWERS.edited(
            "a condition for no number yet",
            12,
            ("shift = tl.where(new == -float('inf'), 0.0, new)", "shift = 0.0 if new == -float('inf') else new"),
        ),
        ANSWERS.edited("times the inverse", 12, ("tl.exp(x - largest) / total", "tl.exp(x - largest) * (1.0 / total)")),
        ANSWERS.edited(
            "powers of two", 12, ("tl.exp(x - largest) / total", "tl.exp2((x - largest) * 1.4426950408889634) / total")
        ),
        ANSWERS.edited("zeros first", 12, ("torch.empty(", "torch.zeros(")),
        ANSWERS.edited(
            "new zeros", 12, ("torch.empty(x.shape, dtype=x.dtype, device=x.device)", "x.new_zeros(x.shape)")
        ),
        ANSWERS.edited(
            "start in whole blocks",
            12,
            (
                "for start in range(0, n, BLOCK):\n        at = start + tl.arange(0, BLOCK)\n        x = "
                "tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n)",
                "for number in range(0, (n + BLOCK - 1) // BLOCK):\n        at = number * BLOCK + "
                "tl.arange(0, BLOCK)\n        x = tl.load(x_ptr + row * row_stride + at * column_stride, "
                "mask=at < n)",
            ),
        ),
        ANSWERS.edited(
            "the sum is not scaled again", 12, ("total * tl.exp(largest - shift) + ", "total + "), below=True
        ),
        ANSWERS.edited("the sum of the last block", 1, ("total * tl.exp(largest - shift) + ", "")),
        ANSWERS.edited(
            "the first block only",
            1,
            (
                "for start in range(0, n, BLOCK):\n        at = start + tl.arange(0, BLOCK)\n        x = "
                "tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n, ",
                "for start in range(0, BLOCK, BLOCK):\n        at = start + tl.arange(0, BLOCK)\n        "
                "x = tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n, ",
            ),
        ),
        ANSWERS.edited(
            "no largest number",
            7,
            ("new = tl.maximum(largest, tl.max(x, axis=0))", "new = largest * 0 + 0.0"),
            ("largest = -float('inf')", "largest = 0.0"),
        ),
        ANSWERS.edited(
            "NaN for leading -inf", 10.5, ("shift = tl.where(new == -float('inf'), 0.0, new)", "shift = new")
        ),
        ANSWERS.edited("zero in masked lanes", 5, ("mask=at < n, other=-float('inf')", "mask=at < n, other=0.0")),
        ANSWERS.edited("zero as the largest number so far", 11, ("largest = -float('inf')", "largest = 0.0")),
        ANSWERS.edited("no division", 0, ("tl.exp(x - largest) / total", "tl.exp(x - largest)")),
        ANSWERS.edited("a sum that starts as an integer", 0, ("total = 0.0", "total = 0")),
        ANSWERS.edited(
            "a loop that breaks",
            0,
            ("        new = tl.maximum(", "        if start >= n:\n            break\n        new = tl.maximum("),
        ),
        ANSWERS.edited(
            "a name of one branch",
            0,
            ("largest = -float('inf')\n    total", "total"),
            (
                "        new = tl.maximum(largest, tl.max(x, axis=0))\n",
                "        new = tl.max(x, axis=0)\n        if start == 0:\n            largest = new\n"
                "        new = tl.maximum(largest, new)\n",
            ),
        ),
        ANSWERS.edited("a logarithm", 0, ("tl.exp(x - largest) / total", "x - largest - tl.log(total)")),
        ANSWERS.edited("wide blocks", 7, ("BLOCK=128", "BLOCK=512")),
        ANSWERS.edited(
            "no stride of columns",
            11,
            ("row_stride + at * column_stride, mask=at < n, other", "row_stride + at, mask=at < n, other"),
            ("row_stride + at * column_stride, mask=at < n)", "row_stride + at, mask=at < n)"),
        ),
        ANSWERS.edited(
            "no stride of rows",
            11,
            (
                "row * row_stride + at * column_stride, mask=at < n, other",
                "row * n + at * column_stride, mask=at < n, other",
            ),
            ("row * row_stride + at * column_stride, mask=at < n)", "row * n + at * column_stride, mask=at < n)"),
        ),
        ANSWERS.edited("no mask on the store", 11, ("/ total, mask=at < n", "/ total")),
        ANSWERS.edited("the launcher turns x", 0, ("x.stride(0), x.stride(1)", "x.stride(1), x.stride(0)")),
        Control("by PyTorch", "def long_softmax(x):\n    return torch.softmax(x, dim=-1)\n", 0),
        ANSWERS.edited("by Triton's own", 0, ("tl.exp(x - largest) / total", "tl.softmax(x)")),
    ),
)
