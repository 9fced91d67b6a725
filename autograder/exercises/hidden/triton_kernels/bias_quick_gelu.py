"""Hidden checks and controls of exercise 12.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.triton_kernels.bias_quick_gelu import (
    NAMES,
    NEAR,
    RIGHT,
    biased,
    computes_in_float32,
    half,
    matrix,
)
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.triton import TritonAnswer


def odd(draw: Draw) -> list[Case]:
    """Return matrices of one row, of one column, and of other odd sizes."""
    return [
        matrix(draw, *draw.choice(((1, 127), (3, 129)))),
        matrix(draw, draw.integer(17, 33), 1),
        matrix(draw, 127, 3),
    ]


def views(draw: Draw) -> list[Case]:
    """Return a transposed matrix, a part of wider rows, every second row, and one row for all, of drawn sizes.

    So no launcher knows the strides from the shape.
    """
    sizes = [(draw.integer(5, 12), draw.integer(33, 63)) for _ in range(4)]
    (rows, columns), begin = sizes[1], draw.integer(1, 20)
    wide = draw.normal(rows, begin + columns + draw.integer(1, 20))
    transposed = (draw.normal(*sizes[0]).T.contiguous().T, draw.normal(sizes[0][1]))
    sparse = (draw.normal(2 * sizes[2][0], sizes[2][1])[::2], draw.normal(2 * sizes[2][1])[::2])
    expanded = (draw.normal(sizes[3][1]).expand(sizes[3]), (draw.normal(1).abs() + 1).expand(sizes[3][1]))
    return [
        Case(transposed, label="with a transposed x"),
        Case(
            (wide[:, begin : begin + columns], draw.normal(columns)), label="with some columns of a wider matrix as x"
        ),
        Case(sparse, label="with every second row, and a bias of stride 2"),
        Case(expanded, label="with an x and a bias of strides 0"),
    ]


def _half(answer: TritonAnswer, draw: Draw) -> None:
    holds(half, biased, NAMES, RIGHT)(answer, draw)
    computes_in_float32(half, biased, NAMES)(answer, draw)


def extreme(draw: Draw) -> list[Case]:
    """Return sums of which the exponential overflows, in half precision and single."""
    large = draw.normal(4, 48, scale=400)
    large[:, ::8] /= 400  # where the factor of the sigmoid shows
    return [Case((large, draw.normal(48)), label="with sums of some hundreds")]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("one row, one column", "odd sizes", 0.5, holds(odd, biased, NAMES, RIGHT)),
        Check("views with strides", "strides", 1, holds(views, biased, NAMES, RIGHT)),
        Check("accesses of views with strides", "strides", 0.5, holds(views, biased, NAMES, inside, NEAR)),
        Check("values in half precision", "half precision", 1, _half),
        Check("large sums", "large values", 0.5, holds(extreme, biased, NAMES, RIGHT)),
    ),
    equivalent={
        "torch.empty((n_rows, n_columns), dtype=x.dtype, device=x.device) -> "
        "torch.empty((n_rows, n_columns), dtype=x.dtype)": "a CPU is the only device",
        "columns = tl.arange(0, COLUMNS)[None, :]: (None, :) -> (:,)": "a block of one dimension broadcasts so, too",
    },
    controls=(
        ANSWERS.reference(10),
        ANSWERS.file("a loop over rows", 10),
        ANSWERS.file("a helper and tiles", 10),
        ANSWERS.file("flat numbers of elements", 10),
        ANSWERS.file("block pointers of two axes", 10),
        ANSWERS.file("a grid of tiles", 10),
        ANSWERS.file("eight programs for all rows", 10),
        ANSWERS.edited("sixteen rows", 10, ("cdiv(n_rows, 8)", "cdiv(n_rows, 16)"), ("ROWS=8", "ROWS=16")),
        ANSWERS.edited("a quotient", 10, ("out = z * tl.sigmoid(1.702 * z)", "out = z / (1.0 + tl.exp(-1.702 * z))")),
        ANSWERS.edited(
            "powers of two", 10, ("tl.sigmoid(1.702 * z)", "(1.0 / (1.0 + tl.exp2(-2.4554669595930155 * z)))")
        ),
        ANSWERS.edited("zeros first", 10, ("torch.empty(", "torch.zeros(")),
        ANSWERS.edited(
            "one mask by rows",
            10,
            (
                "inside = (rows < n_rows) & (columns < n_columns)",
                "inside = tl.where(rows < n_rows, columns < n_columns, False)",
            ),
        ),
        ANSWERS.edited("SiLU", 6, ("tl.sigmoid(1.702 * z)", "tl.sigmoid(z)")),
        ANSWERS.edited("no bias", 0, ("z = x + bias\n", "z = x\n")),
        ANSWERS.edited("only the sigmoid", 0, ("out = z * tl.sigmoid", "out = tl.sigmoid")),
        ANSWERS.edited("times x", 3, ("out = z * tl.sigmoid", "out = x * tl.sigmoid"), below=True),
        ANSWERS.edited(
            "a bias by rows",
            0,
            ("columns * strides[2], mask=columns < n_columns", "rows * strides[2], mask=rows < n_columns"),
        ),
        ANSWERS.edited("a row a program", 7, ("cdiv(n_rows, 8)", "cdiv(n_rows, 1)"), ("ROWS=8", "ROWS=1")),
        ANSWERS.edited(
            "a bias for each element",
            7,
            (
                "bias_ptr + columns * strides[2], mask=columns < n_columns",
                "bias_ptr + columns * strides[2] + 0 * rows, mask=inside",
            ),
        ),
        ANSWERS.edited(
            "no mask for columns",
            10,
            ("inside = (rows < n_rows) & (columns < n_columns)", "inside = (rows < n_rows) & (columns < COLUMNS)"),
            below=True,
        ),
        ANSWERS.edited(
            "no mask for rows",
            9,
            ("inside = (rows < n_rows) & (columns < n_columns)", "inside = (rows >= 0) & (columns < n_columns)"),
        ),
        ANSWERS.edited(
            "no strides of x", 8.5, ("rows * strides[0] + columns * strides[1]", "rows * n_columns + columns")
        ),
        ANSWERS.edited(
            "no stride of columns", 8.5, ("rows * strides[0] + columns * strides[1]", "rows * strides[0] + columns")
        ),
        ANSWERS.edited(
            "strides of 0 not expected", 8.5, ("x.stride(0), x.stride(1)", "x.stride(0) or n_columns, x.stride(1) or 1")
        ),
        ANSWERS.edited(
            "strides by the shape",
            8.5,
            (
                "(x.stride(0), x.stride(1), bias.stride(0))",
                "(1, n_rows, 1) if (n_rows, n_columns) == (9, 40) else (90, 1, 1) if (n_rows, n_columns) == (7, 50) "
                "else (132, 1, 2) if (n_rows, n_columns) == (5, 66) else (n_columns, 1, 1)",
            ),
        ),
        ANSWERS.edited("no stride of the bias", 8.5, ("columns * strides[2]", "columns")),
        ANSWERS.edited(
            "strides of the input for the output",
            8.5,
            ("out_ptr + rows * n_columns + columns", "out_ptr + rows * strides[0] + columns * strides[1]"),
        ),
        ANSWERS.edited(
            "rounded as eager's",
            7.5,
            (
                "out = z * tl.sigmoid(1.702 * z)",
                "z = z.to(x_ptr.dtype.element_ty)\n    out = z * tl.sigmoid(1.702 * "
                "z.to(tl.float32)).to(x_ptr.dtype.element_ty)",
            ),
        ),
        ANSWERS.edited(
            "a grid for 64 rows",
            8.5,
            ("quick_gelu_kernel[triton.cdiv(n_rows, 8),]", "quick_gelu_kernel[2,]"),
            ("ROWS=8", "ROWS=32"),
        ),
        ANSWERS.file("a bias for one row in four", 6.5),
        ANSWERS.edited("one program", 9.5, ("cdiv(n_rows, 8)", "cdiv(n_rows, 128)"), ("ROWS=8", "ROWS=128")),
        ANSWERS.edited("float32 out", 7.5, ("dtype=x.dtype", "dtype=torch.float32")),
        ANSWERS.edited("a rounded factor", 7.5, ("tl.sigmoid(1.702 * z)", "tl.sigmoid(1.7 * z)")),
        Control(
            "by PyTorch",
            "def bias_quick_gelu(x, bias):\n    z = x + bias\n    return z * torch.sigmoid(1.702 * z)\n",
            0,
        ),
    ),
)
