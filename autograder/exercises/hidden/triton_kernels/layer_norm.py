"""Hidden checks and controls of exercise 12.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.hidden.triton_kernels.large_means import MEANS, exactly_summed, of_large_means
from autograder.exercises.triton_kernels.bias_quick_gelu import computes_in_float32
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
from autograder.host.checks.kernel_checks import holds, loads_at_most
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.triton import TritonAnswer


def far(draw: Draw) -> list[Case]:
    """Return rows whose mean is large beside their deviation."""
    (x,) = exactly_summed((draw.normal(4, 96) + draw.choice(MEANS) * draw.choice((1, -1)),))
    return [forward_case(x, draw, "with a mean hundreds of times the deviation")]


def odd_forward(draw: Draw) -> list[Case]:
    """Return one row, and rows of odd lengths."""
    return [forward_of(1, 127, draw), forward_of(3, 129, draw), forward_of(draw.integer(7, 11), 3, draw)]


def odd_backward(draw: Draw) -> list[Case]:
    """Return one row, and a number of rows that no number of programs divides."""
    return [backward_of(1, 65, draw), backward_of(draw.choice((17, 19, 23)), 33, draw)]


def forward_views(draw: Draw) -> list[Case]:
    """Return a transposed matrix, and some columns of a wider one, of drawn sizes."""
    (rows, columns), begin = _sizes(draw), draw.integer(1, 30)
    wide = draw.normal(draw.integer(4, 7), begin + columns + draw.integer(1, 30))
    cut = forward_case(wide[:, begin : begin + columns], draw, "with some columns of a wider matrix as x")
    return [forward_case(draw.normal(columns, rows).T, draw, "with a transposed x"), cut]


def _sizes(draw: Draw) -> tuple[int, int]:
    """Return a number of rows and of columns, from which no launcher knows the strides."""
    return draw.integer(5, 10), draw.integer(36, 63)


def backward_views(draw: Draw) -> list[Case]:
    """Return a transposed gradient, and the gradient of a sum, which is one number at every place."""
    rows, columns = _sizes(draw)
    x = draw.normal(rows, columns)
    transposed = backward_case(draw.normal(columns, rows).T, x, draw, "with a transposed grad")
    expanded = draw.normal(1, 1).expand(rows, columns)
    return [transposed, backward_case(expanded, x, draw, "with an expanded grad, of strides 0")]


def half_backward(draw: Draw) -> list[Case]:
    """Return gradients in half precision."""
    x, grad = (draw.normal(9, 80) * 8).half(), draw.normal(9, 80).half()
    return [backward_case(grad, x, draw, "with float16")]


def _half_backward(answer: TritonAnswer, draw: Draw) -> None:
    computes_in_float32(half_backward, gradients, BACKWARD, GRADIENTS)(answer, draw)
    holds(half_backward, gradients, BACKWARD, BACKWARD_RIGHT, function=GRADIENTS)(answer, draw)


def _loads(case: Case) -> int:
    return int(case.args[0].numel()) * 5 // 2


ANSWERS = Answers(__name__)
FORWARD_FAR = of_large_means(FORWARD_RIGHT)
EIGHT = (
    (
        "torch.empty((4, n), dtype=torch.float32), torch.empty((4, n), dtype=torch.float32)",
        "torch.empty((8, n), dtype=torch.float32), torch.empty((8, n), dtype=torch.float32)",
    ),
    ("backward_kernel[4,]", "backward_kernel[8,]"),
    ("x.stride(1), P=4", "x.stride(1), P=8"),
    ("for_w, grad_w, n, P=4", "for_w, grad_w, n, P=8"),
    ("for_b, grad_b, n, P=4", "for_b, grad_b, n, P=8"),
)
ATOMIC = (
    (
        "torch.empty((4, n), dtype=torch.float32), torch.empty((4, n), dtype=torch.float32)",
        "torch.zeros((4, n), dtype=torch.float32), torch.zeros((4, n), dtype=torch.float32)",
    ),
    ("tl.store(for_w_ptr + first * n + at, for_w, mask=at < n)", "tl.atomic_add(for_w_ptr + at, for_w, mask=at < n)"),
    ("tl.store(for_b_ptr + first * n + at, for_b, mask=at < n)", "tl.atomic_add(for_b_ptr + at, for_b, mask=at < n)"),
)
ONE = (
    (
        "torch.empty((4, n), dtype=torch.float32), torch.empty((4, n), dtype=torch.float32)",
        "torch.empty((1, n), dtype=torch.float32), torch.empty((1, n), dtype=torch.float32)",
    ),
    ("backward_kernel[4,]", "backward_kernel[1,]"),
    ("x.stride(1), P=4", "x.stride(1), P=1"),
    ("for_w, grad_w, n, P=4", "for_w, grad_w, n, P=1"),
    ("for_b, grad_b, n, P=4", "for_b, grad_b, n, P=1"),
)
TWICE = (
    "each of grad and x once, besides weight, statistics and a few partial sums. Compute "
    "grad_x and the partial sums in one "
    "kernel, with fewer programs than rows."
)

HIDDEN = HiddenPart(
    checks=(
        Check("forward: a large mean", "large values", 4, holds(far, normed, FORWARD, FORWARD_FAR)),
        Check("forward: odd sizes", "odd sizes", 0.25, holds(odd_forward, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "backward: odd sizes",
            "odd sizes",
            0.25,
            holds(odd_backward, gradients, BACKWARD, BACKWARD_RIGHT, function=GRADIENTS),
        ),
        Check("forward: views with strides", "strides", 0.5, holds(forward_views, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "backward: views with strides",
            "strides",
            0.5,
            holds(backward_views, gradients, BACKWARD, BACKWARD_RIGHT, function=GRADIENTS),
        ),
        Check("backward: float16 in, float32 inside", "half precision", 1, _half_backward),
        Check(
            "backward: loads of elements",
            "loads",
            0.5,
            holds(many_rows, gradients, BACKWARD, BACKWARD_NEAR, loads_at_most(_loads, TWICE), function=GRADIENTS),
        ),
    ),
    equivalent={
        "part = tl.load(sums_ptr + rows[:, None] * n + at[None, :], mask=at[None, :] < n, other=0.0): "
        "(None, :) -> (:,)": "a block of one dimension broadcasts so, too",
    },
    controls=(
        ANSWERS.reference(18),
        ANSWERS.file("tiles of rows", 18),
        ANSWERS.file("columns for the vectors", 17.5),
        ANSWERS.edited("eight programs", 18, *EIGHT),
        ANSWERS.edited("eps of the default", 12.25, (" / n + eps)", " / n + 1e-05)")),
        ANSWERS.edited(
            "strides by the shape",
            17.5,
            (
                "x.stride(0), x.stride(1), eps",
                "1 if rows == 6 and n == 50 else 120 if rows == 5 and n == 64 else n, "
                "6 if rows == 6 and n == 50 else 1, eps",
            ),
        ),
        ANSWERS.edited(
            "an inverse root",
            18,
            ("1 / tl.sqrt(tl.sum(away * away, axis=0) / n + eps)", "tl.rsqrt(tl.sum(away * away, axis=0) / n + eps)"),
        ),
        ANSWERS.edited("masked by a product", 18, ("tl.where(at < n, x - mean, 0.0)", "(x - mean) * (at < n)")),
        ANSWERS.edited(
            "one factor a row",
            18,
            (
                "inner = g - tl.sum(g, axis=0) / n - hat * (tl.sum(g * hat, axis=0) / n)",
                "inner = g - (tl.sum(g, axis=0) + hat * tl.sum(g * hat, axis=0)) / n",
            ),
        ),
        ANSWERS.edited(
            "sums in another order",
            18,
            ("for_w += grad * hat\n        for_b += grad", "for_b += grad\n        for_w += hat * grad"),
        ),
        ANSWERS.edited("zeros first", 18, ("y = torch.empty(", "y = torch.zeros(")),
        ANSWERS.edited("weight first", 18, ("away * rstd * w + b", "w * (away * rstd) + b")),
        ANSWERS.edited(
            "divided by n - 1",
            12.25,
            ("tl.sum(away * away, axis=0) / n", "tl.sum(away * away, axis=0) / (n - 1)"),
        ),
        ANSWERS.edited(
            "eps outside of the root",
            12.25,
            (
                "1 / tl.sqrt(tl.sum(away * away, axis=0) / n + eps)",
                "1 / (tl.sqrt(tl.sum(away * away, axis=0) / n) + eps)",
            ),
        ),
        ANSWERS.edited("no bias", 9.5, ("away * rstd * w + b", "away * rstd * w")),
        ANSWERS.edited(
            "variance in one pass",
            14.1,
            ("tl.sum(away * away, axis=0) / n + eps", "tl.sum(x * x, axis=0) / n - mean * mean + eps"),
            below=True,
            trap="hundreds of times their deviation",
        ),
        ANSWERS.edited("differences outside of the row", 12.25, ("tl.where(at < n, x - mean, 0.0)", "x - mean")),
        ANSWERS.edited(
            "statistics in half precision",
            16,
            ("mask=at < n, other=0.0).to(tl.float32)\n    mean", "mask=at < n, other=0.0)\n    mean"),
        ),
        ANSWERS.edited(
            "no float32 at all",
            15,
            (
                "mask=at < n, other=0.0).to(tl.float32)\n    mean",
                "mask=at < n, other=0.0)\n    mean",
            ),
            (
                "w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)",
                "w = tl.load(w_ptr + at, mask=at < n, other=0.0)",
            ),
            (
                "grad = tl.load(grad_ptr + row * grad_row + at * grad_column, mask=at < n, other=0.0).to(tl.float32)",
                "grad = tl.load(grad_ptr + row * grad_row + at * grad_column, mask=at < n, other=0.0)",
            ),
        ),
        ANSWERS.edited(
            "numbers that become blocks",
            8.5,
            (
                "for_w, for_b = (tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32))",
                "for_w, for_b = (0.0, 0.0)",
            ),
        ),
        ANSWERS.edited("no weight in the backward", 9.5, ("g = grad * w", "g = grad")),
        ANSWERS.edited("no mean of g", 14.25, ("g - tl.sum(g, axis=0) / n - hat", "g - hat")),
        ANSWERS.edited("no part of the variance", 14.25, (" - hat * (tl.sum(g * hat, axis=0) / n)", "")),
        ANSWERS.edited(
            "statistics are constants",
            14.25,
            ("g - tl.sum(g, axis=0) / n - hat * (tl.sum(g * hat, axis=0) / n)", "g"),
        ),
        ANSWERS.edited("vectors swapped", 10.5, ("return (grad_x, grad_w, grad_b)", "return (grad_x, grad_b, grad_w)")),
        ANSWERS.edited(
            "weight's gradient without the norm", 12, ("for_w += grad * hat", "for_w += grad * x"), below=True
        ),
        ANSWERS.edited("sums with weight", 12, ("for_b += grad", "for_b += g"), below=True),
        ANSWERS.edited("no strides of grad", 17.5, ("row * grad_row + at * grad_column", "row * n + at")),
        ANSWERS.edited(
            "no strides of x forward",
            17.5,
            (
                "x = tl.load(x_ptr + row * x_row + at * x_column, mask=at < n, other=0.0).to(tl.float32)\n    mean",
                "x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)\n    mean",
            ),
        ),
        ANSWERS.edited("the first rows only", 8.5, ("range(first, rows, P)", "range(first, first + 1, P)")),
        ANSWERS.edited("one program", 14, *ONE),
        ANSWERS.edited("atomic sums", 14, *ATOMIC),
        Control(
            "by PyTorch",
            "def layer_norm(x, weight, bias, eps):\n    return torch.native_layer_norm(x, "
            "x.shape[1:], weight, bias, eps)\n",
            0,
        ),
    ),
)
