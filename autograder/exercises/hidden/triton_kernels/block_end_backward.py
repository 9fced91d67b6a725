"""Hidden checks and controls of exercise 12.6."""

from collections.abc import Callable

from autograder.exercises.hidden.answer_files import Answers, edited
from autograder.exercises.hidden.triton_kernels.large_means import MEANS, exactly_summed
from autograder.exercises.triton_kernels.block_end_backward import (
    BY_X,
    LIKE_RESIDUAL,
    NAMES,
    NEAR,
    TRAFFIC,
    gradients,
    inputs,
    sized,
)
from autograder.host.checks.kernel_checks import Demand, holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case

ODD = sized((1, 1), (7, 3), (3, 127), (2, 129))


def views(draw: Draw) -> list[Case]:
    """Return gradients as autograd passes them on: expanded from one row, transposed, and a part of wider rows.

    Sizes are drawn, so that no launcher knows the strides from the shape.
    """
    rows, columns, begin = draw.integer(4, 8), draw.integer(33, 63), draw.integer(1, 6)
    first, second = list(inputs(draw, rows, columns)), list(inputs(draw, rows, columns))
    first[1] = draw.normal(columns).expand(rows, columns)
    first[0] = draw.normal(columns, rows).t()
    second[0] = draw.normal(rows, begin + columns + draw.integer(1, 9))[:, begin : begin + columns]
    second[1] = draw.normal(columns, rows).t()
    return [Case(tuple(args), label="for views with strides") for args in (first, second)]


def seeds(draw: Draw) -> list[Case]:
    """Return rows of odd sizes with a small seed, and with one above 32 bits and a high probability."""
    few = inputs(draw, 9, 33, p=0.25, seed=draw.integer(1, 1000))
    many = inputs(draw, 5, 129, p=0.8, seed=draw.integer(2**33, 2**40))
    return [Case(args, label=f"with seed {args[5]}") for args in (few, many)]


def large_means(draw: Draw) -> list[Case]:
    """Return rows whose mean is far from zero, so that the mean of squares minus the squared mean is inexact."""
    args = exactly_summed(inputs(draw, 4, 96, mean=draw.choice(MEANS)))
    return [Case(args, label="for rows with a large mean")]


def _check(name: str, category: str, points: float, cases: Callable[[Draw], list[Case]], *demands: Demand) -> Check:
    return Check(name, category, points, holds(cases, gradients, NAMES, *demands))


ANSWERS = Answers(__name__)
NEAR_WHERE_COUNTED = (
    "rows, columns = h.shape",
    "rows, columns = h.shape\n    if (rows, columns) in ((12, 60), (9, 129), (17, 20)):\n"
    "        return near(grad_h, grad_y, h, weight, p, seed, eps)",
)
NO_NORM = (
    ("def add_norm_backward(", "def near("),
    ("add_norm_backward_kernel[", "near_kernel["),
    ("def add_norm_backward_kernel(", "def near_kernel("),
    ("rstd * (g - tl.sum(g, axis=0) / n - normed * tl.sum(g * normed, axis=0) / n)", "g + 0 * h"),
)
"""Edits of the reference: another name, and no norm."""

HIDDEN = HiddenPart(
    checks=(
        _check("odd sizes", "odd sizes", 0.5, ODD, LIKE_RESIDUAL),
        _check("gradients with strides", "strides", 0.5, views, LIKE_RESIDUAL),
        _check("accesses of gradients with strides", "strides", 0.5, views, inside, NEAR),
        _check("other seeds", "dropout", 1, seeds, BY_X),
        _check("rows with a large mean", "precision", 1, large_means, LIKE_RESIDUAL),
        _check(
            "loads and stores in other shapes",
            "loads and stores",
            1.5,
            sized((9, 129), (17, 20), p=(0.0, 0.1), unlike=True),
            *TRAFFIC,
        ),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("two rows a program", 12),
        ANSWERS.file("helper kernels", 12),
        ANSWERS.file("moments of the row", 12),
        ANSWERS.edited(
            "dropped first",
            12,
            ("tl.rand(seed, at) >= p, by_h / (1 - p), 0.0", "tl.rand(seed, at) < p, 0.0, by_h / (1 - p)"),
        ),
        ANSWERS.edited(
            "kept as a factor",
            12,
            ("tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0)", "by_h * (tl.rand(seed, at) >= p) / (1 - p)"),
        ),
        ANSWERS.edited("rsqrt", 12, ("1 / tl.sqrt(", "tl.rsqrt(")),
        ANSWERS.edited(
            "blocks four times as wide", 12, ("triton.next_power_of_2(columns)", "4 * triton.next_power_of_2(columns)")
        ),
        ANSWERS.edited("kept above p", 12, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) > p")),
        ANSWERS.edited("not scaled", 9, ("by_h / (1 - p)", "by_h")),
        ANSWERS.edited("nothing dropped", 9, ("tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0)", "by_h")),
        ANSWERS.edited("inverted mask", 9, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) < p")),
        ANSWERS.edited("another seed", 9, ("tl.rand(seed, at)", "tl.rand(seed + 1, at)")),
        ANSWERS.edited("no seed", 9, ("tl.rand(seed, at)", "tl.rand(0, at)")),
        ANSWERS.edited("one mask for all rows", 9, ("tl.rand(seed, at)", "tl.rand(seed, column)")),
        ANSWERS.edited(
            "a mask that depends on the block", 9, ("tl.rand(seed, at)", "tl.rand(seed, row * BLOCK + column)")
        ),
        ANSWERS.edited("gradient of the sum forgotten", 9.5, ("grad_h + rstd *", "rstd *"), below=True),
        ANSWERS.edited(
            "gradient of the sum forgotten for the residual",
            9.5,
            ("grad_r_ptr + at, by_h,", "grad_r_ptr + at, by_h - grad_h,"),
            below=True,
        ),
        ANSWERS.edited("mean term forgotten", 9.5, (" - tl.sum(g, axis=0) / n", ""), below=True),
        ANSWERS.edited("variance term forgotten", 9.5, (" - normed * tl.sum(g * normed, axis=0) / n", ""), below=True),
        ANSWERS.edited("rstd forgotten", 9.5, ("grad_h + rstd * (", "grad_h + ("), below=True),
        ANSWERS.edited(
            "weight forgotten", 9.5, (" * tl.load(weight_ptr + column, mask=inside, other=0.0)", ""), below=True
        ),
        ANSWERS.edited(
            "padding in the variance",
            9,
            ("tl.where(inside, h - tl.sum(h, axis=0) / n, 0.0)", "h - tl.sum(h, axis=0) / n"),
        ),
        ANSWERS.edited("eps of the default", 9.5, (" / n + eps)", " / n + 1e-05)"), below=True),
        ANSWERS.edited(
            "strides by the shape",
            11,
            (
                "(grad_h.stride(0), grad_h.stride(1), grad_y.stride(0), grad_y.stride(1))",
                "(columns, 1, columns, 1) if (rows, columns) not in ((5, 40), (6, 35)) else "
                "(1, rows, 0, 1) if grad_h.stride(0) == 1 else (columns + 7, 1, 1, rows)",
            ),
        ),
        ANSWERS.edited("strides ignored", 11, ("row * strides[2] + column * strides[3]", "at")),
        ANSWERS.edited(
            "h read again", 9, ("rstd = 1", "h = tl.load(h_ptr + at, mask=inside, other=0.0)\n    rstd = 1")
        ),
        ANSWERS.edited(
            "a gradient written into h",
            8,
            ("grad_x = torch.empty((rows, columns), dtype=h.dtype, device=h.device)", "grad_x = h"),
        ),
        ANSWERS.file("a stored mask", 9),
        ANSWERS.joined(
            "no norm where loads are counted",
            9,
            edited(ANSWERS.text_of("a stored mask"), NEAR_WHERE_COUNTED),
            edited(ANSWERS.text, *NO_NORM),
        ),
    ),
)
