"""Hidden checks and controls of exercise 12.1."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.masked_blend import NAMES, NEAR, RIGHT, blended, of_lengths, stored_once
from autograder.host.checks.kernel_checks import holds, inside, whole_blocks
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case


def views(draw: Draw) -> list[Case]:
    """Return vectors whose elements are not neighbours: every second and third element, and one column of a matrix."""
    n = draw.choice((239, 251))
    apart = Case((draw.normal(2 * n)[::2], draw.normal(3 * n)[::3], 0.3), label="with views of strides 2 and 3")
    column = Case((draw.normal(n, 5)[:, 2], draw.normal(n), 0.7), label="with a column of a matrix as x")
    return [apart, column]


def half(draw: Draw) -> list[Case]:
    """Return two vectors of float16."""
    n = draw.integer(100, 200)
    x, y = (draw.normal(n, dtype=torch.float16) for _ in range(2))
    return [Case((x, y, 0.3), label=f"with {n} elements of float16")]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "lengths around a block",
            "odd sizes",
            0.5,
            holds(of_lengths((1,), (127, 129), (511, 763)), blended, NAMES, RIGHT, whole_blocks, stored_once),
        ),
        Check("no element at all", "odd sizes", 0.25, holds(of_lengths((0,), (3,)), blended, NAMES, RIGHT)),
        Check("a vector of float16", "dtypes", 0.25, holds(half, blended, NAMES, NEAR)),
        Check("views with strides", "strides", 1, holds(views, blended, NAMES, RIGHT, whole_blocks, stored_once)),
        Check(
            "accesses of views with strides",
            "strides",
            0.5,
            holds(views, blended, NAMES, inside, NEAR, whole_blocks, stored_once),
        ),
    ),
    equivalent={
        "torch.empty(n, dtype=x.dtype, device=x.device) -> torch.empty(n, dtype=x.dtype)": "a CPU is the only device",
    },
    controls=(
        ANSWERS.reference(6),
        ANSWERS.file("a loop over blocks", 6),
        ANSWERS.file("helpers and constants", 6),
        ANSWERS.file("pointers that move", 6),
        ANSWERS.file("block pointers", 6),
        ANSWERS.file("a grid of two axes", 6),
        ANSWERS.file("typed and documented", 6),
        ANSWERS.file("options for the compiler", 6),
        ANSWERS.file("a launcher in plain Python", 6),
        ANSWERS.edited("another block", 6, ("cdiv(n, 256)", "cdiv(n, 64)"), ("BLOCK=256", "BLOCK=64")),
        ANSWERS.edited("weights of both", 6, ("at, x + t * (y - x)", "at, x * (1.0 - t) + y * t")),
        ANSWERS.edited("a mask by where", 6, ("inside = at < n", "inside = tl.where(at < n, True, False)")),
        ANSWERS.edited(
            "filled first, and counted by math",
            6,
            ("def blend(x, y, t):", "import math\n\ndef blend(x, y, t):"),
            ("torch.empty(n, dtype=x.dtype, device=x.device)", "torch.full_like(x, 0.0)"),
            ("triton.cdiv(n, 256)", "math.ceil(n / 256)"),
        ),
        ANSWERS.edited("like x", 6, ("torch.empty(n, dtype=x.dtype, device=x.device)", "torch.empty_like(x)")),
        ANSWERS.edited(
            "no mask on loads",
            4.5,
            ("at * x_stride, mask=inside", "at * x_stride"),
            ("at * y_stride, mask=inside", "at * y_stride"),
        ),
        ANSWERS.edited("a number as the grid", 0, ("[triton.cdiv(n, 256),]", "[triton.cdiv(n, 256)]")),
        ANSWERS.edited("no mask on the store", 4.5, ("(y - x), mask=inside", "(y - x)")),
        ANSWERS.edited("one lane too many", 4.5, ("at < n", "at <= n")),
        ANSWERS.edited("no strides", 4.5, ("at * x_stride", "at"), ("at * y_stride", "at"), trap="and any strides"),
        ANSWERS.edited(
            "a mask by addresses",
            4.5,
            ("at * x_stride, mask=inside", "at * x_stride, mask=at * x_stride < n"),
            trap="and any strides",
        ),
        ANSWERS.edited("x and y swapped", 0, ("at, x + t * (y - x)", "at, y + t * (x - y)")),
        ANSWERS.edited("no difference", 0, ("at, x + t * (y - x)", "at, x + t * y")),
        ANSWERS.edited("whole blocks only", 3.5, ("triton.cdiv(n, 256)", "n // 256"), below=True),
        ANSWERS.edited("one program", 2.5, ("triton.cdiv(n, 256)", "1"), below=True),
        ANSWERS.edited("every program the first block", 2.5, ("tl.program_id(0) * BLOCK + ", ""), below=True),
        ANSWERS.edited(
            "the last element again in place of a mask",
            3.25,
            (
                "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
                "tl.minimum(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), n - 1)",
            ),
            ("inside = at < n", "inside = at >= 0"),
            below=True,
        ),
        ANSWERS.edited(
            "blocks that overlap",
            5.6,
            ("triton.cdiv(n, 256)", "triton.cdiv(n, 128)"),
            ("tl.program_id(0) * BLOCK", "tl.program_id(0) * 128"),
            below=True,
        ),
        ANSWERS.edited("one block for all", 4.5, ("cdiv(n, 256)", "cdiv(n, 8192)"), ("BLOCK=256", "BLOCK=8192")),
        ANSWERS.edited(
            "x loaded twice",
            5.25,
            ("at, x + t * (y - x)", "at, x + t * (y - tl.load(x_ptr + at * x_stride, mask=inside))"),
        ),
        ANSWERS.edited("always float32", 5.75, ("dtype=x.dtype, ", "")),
        Control("by PyTorch", "def blend(x, y, t):\n    return torch.lerp(x, y, t)\n", 0),
        Control("by arithmetic of tensors", "def blend(x, y, t):\n    return x + t * (y - x)\n", 0),
    ),
)
