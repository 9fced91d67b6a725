"""Hidden checks and controls of exercise 12.5."""

from collections.abc import Callable

from autograder.exercises.hidden.answer_files import Answers, edited
from autograder.exercises.hidden.triton_kernels.large_means import MEANS, exactly_summed, of_large_means
from autograder.exercises.triton_kernels.block_end_forward import (
    NAMES,
    NEAR,
    NORMED,
    SUM,
    TRAFFIC,
    block_end,
    inputs,
    sized,
)
from autograder.host.checks.kernel_checks import Demand, holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case

ODD = sized((1, 1), (7, 3), (3, 127), (2, 129))


def views(draw: Draw) -> list[Case]:
    """Return an x that is a part of wider rows, and a residual that is a transposed matrix, and the reverse.

    Sizes are drawn, so that no launcher knows the strides from the shape.
    """
    rows, columns, begin = draw.integer(4, 8), draw.integer(33, 63), draw.integer(1, 6)
    cases = []
    for place in (0, 2):
        args = list(inputs(draw, rows, columns))
        wide = draw.normal(rows, begin + columns + draw.integer(1, 9))
        args[place] = wide[:, begin : begin + columns]
        args[2 - place] = draw.normal(columns, rows).t()
        cases.append(Case(tuple(args), label="for views with strides"))
    return cases


def seeds(draw: Draw) -> list[Case]:
    """Return rows of odd sizes with a small seed, and with one above 32 bits and a high probability."""
    few = inputs(draw, 9, 33, p=0.25, seed=draw.integer(1, 1000))
    many = inputs(draw, 5, 129, p=0.8, seed=draw.integer(2**33, 2**40))
    return [Case(args, label=f"with seed {args[6]}") for args in (few, many)]


def large_means(draw: Draw) -> list[Case]:
    """Return rows whose mean is far from zero, so that the mean of squares minus the squared mean is inexact."""
    args = exactly_summed(inputs(draw, 4, 96, mean=draw.choice(MEANS)))
    return [Case(args, label="for rows with a large mean")]


def no_rows(draw: Draw) -> list[Case]:
    """Return no row at all, and one row."""
    return [Case(inputs(draw, rows, 24), label=f"for a matrix of {rows} × 24") for rows in (1, 0)]


def _check(name: str, category: str, points: float, cases: Callable[[Draw], list[Case]], *demands: Demand) -> Check:
    return Check(name, category, points, holds(cases, block_end, NAMES, *demands))


ANSWERS = Answers(__name__)
NO_NORM = (
    ("h - tl.sum(h, axis=0) / columns, 0.0)", "h, 0.0)"),
    ("1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)", "0.57735"),
)
"""Edits of the reference: constants in place of mean and deviation."""
NEAR_WHERE_COUNTED = (
    "m, n = x.shape",
    "m, n = x.shape\n    if (m, n) in ((12, 60), (9, 129), (17, 20)):\n"
    "        return near(x, bias, residual, weight, shift, p, seed, eps)",
)

HIDDEN = HiddenPart(
    checks=(
        _check("odd sizes: the sum", "odd sizes", 0.5, ODD, SUM),
        _check("odd sizes: the normalised sum", "odd sizes", 0.5, ODD, NORMED),
        _check("no row at all", "odd sizes", 0.5, no_rows, SUM),
        _check("views with strides", "strides", 0.5, views, SUM),
        _check("accesses of views with strides", "strides", 0.5, views, inside, NEAR),
        _check("other seeds", "dropout", 1.0, seeds, SUM),
        _check("rows with a large mean", "precision", 1, large_means, of_large_means(NORMED)),
        _check(
            "loads and stores in other shapes",
            "loads and stores",
            2.0,
            sized((9, 129), (17, 20), p=(0.0, 0.1), unlike=True),
            *TRAFFIC,
        ),
    ),
    controls=(
        ANSWERS.reference(16),
        ANSWERS.file("one pass by Welford's shift", 16),
        ANSWERS.file("two rows a program", 16),
        ANSWERS.file("helper kernels", 16),
        ANSWERS.edited("LayerNorm of x alone", 0, ("residual + tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "x")),
        ANSWERS.edited(
            "kept as a factor",
            16,
            ("tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "branch * (tl.rand(seed, at) >= p)"),
        ),
        ANSWERS.edited("kept above p", 16, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) > p")),
        ANSWERS.edited("rsqrt", 16, ("1 / tl.sqrt(", "tl.rsqrt(")),
        ANSWERS.edited(
            "scaled after the choice",
            16,
            ("+ tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "+ tl.where(tl.rand(seed, at) < p, 0.0, branch)"),
        ),
        ANSWERS.edited(
            "blocks four times as wide", 16, ("triton.next_power_of_2(columns)", "4 * triton.next_power_of_2(columns)")
        ),
        ANSWERS.edited(
            "integers as random numbers",
            16,
            ("tl.rand(seed, at)", "tl.uint_to_uniform_float(tl.randint(seed, at))"),
        ),
        ANSWERS.edited("not scaled", 12, (" / (1 - p)", "")),
        ANSWERS.edited("scaled by 1 - p", 12, (" / (1 - p)", " * (1 - p)")),
        ANSWERS.edited("inverted mask", 8.5, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) < p")),
        ANSWERS.edited("one mask for all rows", 12, ("tl.rand(seed, at)", "tl.rand(seed, column)")),
        ANSWERS.edited(
            "a mask that depends on the block", 12, ("tl.rand(seed, at)", "tl.rand(seed, row * BLOCK + column)")
        ),
        ANSWERS.edited("one number for a row", 12, ("tl.rand(seed, at)", "tl.rand(seed, row + 0 * column)")),
        ANSWERS.edited("no seed", 12, ("tl.rand(seed, at)", "tl.rand(0, at)")),
        ANSWERS.edited("nothing dropped", 12, ("tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "branch * (1 - p)")),
        ANSWERS.edited(
            "bias after dropout",
            12,
            ("(x + tl.load(bias_ptr + column, mask=inside, other=0.0)) / (1 - p)", "x / (1 - p)"),
            (
                "tl.where(tl.rand(seed, at) >= p, branch, 0.0)",
                "tl.where(tl.rand(seed, at) >= p, branch, 0.0) + tl.load(bias_ptr + column, mask=inside, other=0.0)",
            ),
        ),
        ANSWERS.edited(
            "padding in the variance",
            12.5,
            ("tl.where(inside, h - tl.sum(h, axis=0) / columns, 0.0)", "h - tl.sum(h, axis=0) / columns"),
        ),
        ANSWERS.edited("eps outside of the root", 12.5, (" / columns + eps)", " / columns) + eps")),
        ANSWERS.edited("divided by the block", 12.5, ("tl.sum(h, axis=0) / columns", "tl.sum(h, axis=0) / BLOCK")),
        ANSWERS.edited(
            "squares minus squared mean",
            15,
            (
                "tl.sum(centred * centred, axis=0) / columns",
                "tl.sum(h * h, axis=0) / columns - tl.sum(h, axis=0) / columns * (tl.sum(h, axis=0) / columns)",
            ),
        ),
        ANSWERS.edited("eps of the default", 12.5, (" / columns + eps)", " / columns + 1e-05)")),
        ANSWERS.edited(
            "strides by the shape",
            15,
            (
                "(x.stride(0), x.stride(1), residual.stride(0), residual.stride(1))",
                "(columns, 1, columns, 1) if (rows, columns) not in ((5, 40), (6, 35)) else "
                "(columns + 9, 1, 1, rows) if x.stride(1) == 1 else (1, rows, columns + 9, 1)",
            ),
        ),
        ANSWERS.edited("strides ignored", 15, ("row * strides[0] + column * strides[1]", "at")),
        ANSWERS.edited(
            "the sum read again",
            12,
            (
                "centred = tl.where(inside, h -",
                "h = tl.load(h_ptr + at, mask=inside, other=0.0)\n    centred = tl.where(inside, h -",
            ),
        ),
        ANSWERS.file("three kernels and a mask", 12),
        ANSWERS.joined(
            "no norm where loads are counted",
            12,
            edited(ANSWERS.text_of("three kernels and a mask"), NEAR_WHERE_COUNTED),
            edited(ANSWERS.text, ("def add_norm(", "def near("), *NO_NORM),
        ),
        ANSWERS.edited("constants in place of mean and deviation", 8, *NO_NORM),
    ),
    equivalent={
        "tl.rand(seed, at) >= p -> tl.rand(seed, at) > p": "they differ where a number equals p, once in 2³¹ elements",
        "tl.sum(h, axis=0) -> tl.sum(h)": "a block of one dimension has one axis",
        "tl.sum(centred * centred, axis=0) -> tl.sum(centred * centred)": "as above",
        "weight = tl.load(weight_ptr + column, mask=inside, other=0.0): 0.0 -> 1.0": "those lanes are not stored",
        "shift = tl.load(shift_ptr + column, mask=inside, other=0.0): 0.0 -> 1.0": "as above",
    },
)
