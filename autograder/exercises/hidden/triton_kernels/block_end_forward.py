"""Hidden checks and controls of exercise 12.5."""

from collections.abc import Callable

from autograder.exercises.hidden.answer_files import Answers
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
from autograder.host.checks.kernel_checks import holds, inside
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case

ODD = sized((1, 1), (7, 3), (3, 127), (2, 129), p=(0.25, 0.5))


def views(draw: Draw) -> list[Case]:
    """Return an x that is a part of wider rows, and a residual that is a transposed matrix, and the reverse."""
    rows, columns = draw.choice(((5, 40), (6, 35)))
    cases = []
    for place in (0, 2):
        args = list(inputs(draw, rows, columns, p=0.3))
        wide = draw.normal(rows, columns + 9)
        args[place] = wide[:, 4 : 4 + columns]
        args[2 - place] = draw.normal(columns, rows).t()
        cases.append(Case(tuple(args), label="for views with strides"))
    return cases


def seeds(draw: Draw) -> list[Case]:
    """Return the same rows with several seeds, one of them above 32 bits, and a high probability."""
    first = inputs(draw, 8, 40, p=0.8)
    drawn = (draw.integer(1, 1000), draw.integer(2**33, 2**40))
    return [Case((*first[:6], seed, first[7]), label=f"with seed {seed}") for seed in drawn]


def large_means(draw: Draw) -> list[Case]:
    """Return rows whose mean is far from zero, so that the mean of squares minus the squared mean is inexact."""
    return [Case(inputs(draw, 4, 96, mean=draw.choice((600.0, 900.0))), label="for rows with a large mean")]


def no_rows(draw: Draw) -> list[Case]:
    """Return no row at all, and one row."""
    return [Case(inputs(draw, rows, 24, p=0.5), label=f"for {rows} rows") for rows in (1, 0)]


def _check(name: str, category: str, points: float, cases: Callable[[Draw], list[Case]], *demands: object) -> Check:
    return Check(name, category, points, holds(cases, block_end, NAMES, *demands))  # type: ignore[arg-type]  # demands


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        _check("odd sizes: the sum", "odd sizes", 0.6, ODD, SUM),
        _check("odd sizes: the normalised sum", "odd sizes", 0.6, ODD, NORMED),
        _check("no row at all", "odd sizes", 0.3, no_rows, SUM, NORMED),
        _check("views with strides", "strides", 0.8, views, SUM),
        _check("accesses of views with strides", "strides", 0.5, views, inside, NEAR),
        _check("other seeds", "dropout", 0.6, seeds, SUM),
        _check("rows with a large mean", "precision", 0.6, large_means, NORMED),
        Check(
            "loads and stores in other shapes",
            "loads and stores",
            1.6,
            holds(sized((3, 129), (17, 20), p=(0.0, 0.6)), block_end, NAMES, *TRAFFIC),
            speed=True,
        ),
    ),
    controls=(
        ANSWERS.reference(14),
        ANSWERS.file("one pass by Welford's shift", 14),
        ANSWERS.file("two rows a program", 14),
        ANSWERS.file("helper kernels", 14),
        ANSWERS.edited("kept as a factor", 14, ("tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "branch * (tl.rand(seed, at) >= p)")),
        ANSWERS.edited("kept above p", 14, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) > p")),
        ANSWERS.edited("rsqrt", 14, ("1 / tl.sqrt(", "tl.rsqrt(")),
        ANSWERS.edited("scaled after the choice", 14, ("+ tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "+ tl.where(tl.rand(seed, at) < p, 0.0, branch)")),
        ANSWERS.edited("blocks four times as wide", 14, ("triton.next_power_of_2(columns)", "4 * triton.next_power_of_2(columns)")),
        ANSWERS.edited(
            "integers as random numbers",
            14,
            ("tl.rand(seed, at)", "tl.uint_to_uniform_float(tl.randint(seed, at))"),
        ),
        ANSWERS.edited("not scaled", 14, (" / (1 - p)", ""), below=True),
        ANSWERS.edited("scaled by 1 - p", 14, (" / (1 - p)", " * (1 - p)"), below=True),
        ANSWERS.edited("inverted mask", 14, ("tl.rand(seed, at) >= p", "tl.rand(seed, at) < p"), below=True),
        ANSWERS.edited("one mask for all rows", 14, ("tl.rand(seed, at)", "tl.rand(seed, column)"), below=True),
        ANSWERS.edited("a mask that depends on the block", 14, ("tl.rand(seed, at)", "tl.rand(seed, row * BLOCK + column)"), below=True),
        ANSWERS.edited("one number for a row", 14, ("tl.rand(seed, at)", "tl.rand(seed, row + 0 * column)"), below=True),
        ANSWERS.edited("no seed", 14, ("tl.rand(seed, at)", "tl.rand(0, at)"), below=True),
        ANSWERS.edited("nothing dropped", 14, ("tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "branch * (1 - p)"), below=True),
        ANSWERS.edited("bias after dropout", 14, ("(x + tl.load(bias_ptr + column, mask=inside, other=0.0)) / (1 - p)", "x / (1 - p)"), ("tl.where(tl.rand(seed, at) >= p, branch, 0.0)", "tl.where(tl.rand(seed, at) >= p, branch, 0.0) + tl.load(bias_ptr + column, mask=inside, other=0.0)"), below=True),
        ANSWERS.edited("padding in the variance", 14, ("tl.where(inside, h - tl.sum(h, axis=0) / columns, 0.0)", "h - tl.sum(h, axis=0) / columns"), below=True),
        ANSWERS.edited("eps outside of the root", 14, (" / columns + eps)", " / columns) + eps"), below=True),
        ANSWERS.edited("divided by the block", 14, ("tl.sum(h, axis=0) / columns", "tl.sum(h, axis=0) / BLOCK"), below=True),
        ANSWERS.edited("squares minus squared mean", 14, ("tl.sum(centred * centred, axis=0) / columns", "tl.sum(h * h, axis=0) / columns - tl.sum(h, axis=0) / columns * (tl.sum(h, axis=0) / columns)"), below=True),
        ANSWERS.edited("strides ignored", 14, ("row * x_row + column * x_column", "at"), below=True),
        ANSWERS.edited("the sum read again", 14, ("centred = tl.where(inside, h -", "h = tl.load(h_ptr + at, mask=inside, other=0.0)\n    centred = tl.where(inside, h -"), below=True),
        ANSWERS.file("three kernels and a mask", 14, below=True),
    ),
)
