"""Exercise 12.5: the block end of a pre-norm layer in one kernel, which returns the sum and the normalised sum."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.row_kernel_checks import Formula, Step, either, follows, founded, once, right, same
from autograder.host.bandwidth import Bandwidth
from autograder.host.checks.kernel_checks import Demand, apart, holds, inside, resembles, shared_out
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, promoted
from autograder.host.kinds.triton import KernelRun
from autograder.host.traced import TensorSpec
from course_lib.kernels.dropout import uniform_numbers

NAMES = ("the sum", "the normalised sum")
MATRIX, ROW = TensorSpec((16_384, 1024)), TensorSpec((1024,))  # of the call whose bandwidth is measured


def kept(like: Tensor, p: float, seed: int, *, of: str = "row * columns + column") -> Tensor:
    """Return the mask of kept elements; `of` is the position whose random number decides."""
    rows, columns = like.shape
    row = torch.arange(rows, device=like.device)[:, None]
    column = torch.arange(columns, device=like.device)
    positions = {
        "row * columns + column": row * columns + column,
        "column": row * 0 + column,
        "row": row + 0 * column,
        "row * BLOCK + column": row * _lanes(columns) + column,
        "column * rows + row": column * rows + row,
    }
    return uniform_numbers(seed, positions[of]) >= torch.tensor(p, dtype=torch.float32)


def normalised(h: Tensor, weight: Tensor, shift: Tensor, eps: float) -> Tensor:
    """Return LayerNorm by PyTorch's own function."""
    return F.layer_norm(h, h.shape[-1:], weight, shift, eps)


def block_end(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the reference: the sum, and the normalised sum."""
    h = residual + (x + bias) * kept(x, p, seed).to(x.dtype) / (1 - p)
    return h, normalised(h, weight, shift, eps)


Sum = Callable[[Tensor, Tensor, Tensor, float, int], Tensor]
Norm = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def _sum(found: Sum) -> Formula:
    def formula(
        x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
    ) -> Sequence[Tensor]:
        h = found(x, bias, residual, p, seed)
        return h, normalised(h, weight, shift, eps)

    return formula


def _masked(of: str) -> Sum:
    return lambda x, b, r, p, seed: r + (x + b) * kept(x, p, seed, of=of) / (1 - p)


def _sample_variance(h: Tensor) -> Tensor:
    columns = h.shape[-1]
    return h.var(-1, keepdim=True, correction=0) * columns / max(1, columns - 1)


def _lanes(columns: int) -> int:
    return 1 << max(0, columns - 1).bit_length()


def _short_mean(h: Tensor, weight: Tensor, shift: Tensor, eps: float) -> Tensor:
    centred = h - h.sum(-1, keepdim=True) / _lanes(h.shape[-1])
    return centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + eps) * weight + shift


def _padded_variance(h: Tensor, weight: Tensor, shift: Tensor, eps: float) -> Tensor:
    mean, columns = h.mean(-1, keepdim=True), h.shape[-1]
    padding = _lanes(columns) - columns
    squares = ((h - mean) ** 2).sum(-1, keepdim=True) + padding * mean**2
    return (h - mean) * torch.rsqrt(squares / columns + eps) * weight + shift


WRONG_SUMS: Sequence[tuple[Sum, str]] = (
    (
        lambda x, b, r, p, seed: r + (x + b) * kept(x, p, seed),
        "Kept elements were not scaled: divide them by 1 - p, so that the expected value stays.",
    ),
    (
        lambda x, b, r, p, seed: r + (x + b) * kept(x, p, seed) * (1 - p),
        "Kept elements were multiplied by 1 - p; they are divided by it.",
    ),
    (
        lambda x, b, r, p, seed: r + (x + b) * kept(x, p, seed) / p,
        "Kept elements were divided by p; that is the share of the dropped ones. Divide by 1 - p.",
    ),
    (
        lambda x, b, r, p, seed: r + (x + b) * ~kept(x, p, seed) / (1 - p),
        "The mask is inverted: an element is kept where its random number is at least p.",
    ),
    (
        lambda x, b, r, p, seed: (r + x + b) * kept(x, p, seed) / (1 - p),
        "Dropout was applied to the residual, too; drop x + bias, and add the residual afterwards.",
    ),
    (
        lambda x, b, r, p, seed: r + x * kept(x, p, seed) / (1 - p) + b,
        "The bias was added after dropout; it is added to x first.",
    ),
    (
        _masked("column"),
        "All rows have the same mask: the position counts on over the whole matrix, row * columns + column.",
    ),
    (_masked("row"), "A whole row was kept or dropped: each element has a position of its own."),
    (
        _masked("row * BLOCK + column"),
        "The position is row * BLOCK + column, so the mask changes with the block; count row * columns + column.",
    ),
    (
        _masked("column * rows + row"),
        "The position is column * rows + row: the matrix was counted column by column; count row by row.",
    ),
    (
        lambda x, b, r, p, seed: r + (x + b) * kept(x, p, 0) / (1 - p),
        "The mask is that of seed 0: pass the seed of the call to tl.rand.",
    ),
    (lambda x, b, r, p, seed: r + x + b, "Nothing was dropped: p and seed had no effect."),
    (lambda x, b, r, p, seed: r + x, "The bias is missing; dropout had no effect."),
    (lambda x, b, r, p, seed: r + x * kept(x, p, seed) / (1 - p), "The bias is missing."),
    (lambda x, b, r, p, seed: (x + b) * kept(x, p, seed) / (1 - p), "The residual is missing."),
)
WRONG_NORMS: Sequence[tuple[Norm, str]] = (
    (
        lambda h, w, s, eps: (h - h.mean(-1, keepdim=True)) / (_sample_variance(h).sqrt() + eps) * w + s,
        "The variance was divided by columns - 1, and eps stands outside of the root.",
    ),
    (
        lambda h, w, s, eps: (h - h.mean(-1, keepdim=True)) * torch.rsqrt(_sample_variance(h) + eps) * w + s,
        "The squares were divided by columns - 1; LayerNorm divides by columns.",
    ),
    (
        lambda h, w, s, eps: (h - h.mean(-1, keepdim=True)) * torch.rsqrt((h**2).mean(-1, keepdim=True) + eps) * w + s,
        "The mean of h * h is not the variance: subtract the mean of the row first.",
    ),
    (
        lambda h, w, s, eps: h * torch.rsqrt((h**2).mean(-1, keepdim=True) + eps) * w + s,
        "This is RMSNorm: LayerNorm subtracts the mean of the row first.",
    ),
    (
        lambda h, w, s, eps: h * torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps) * w + s,
        "The mean was subtracted for the variance, and not from the result.",
    ),
    (
        lambda h, w, s, eps: normalised(h, w, s, 0.0) + eps * (h - h.mean(-1, keepdim=True)) * w,
        "eps was added to one over the root; it is added to the variance, under the root.",
    ),
    (
        lambda h, w, s, eps: (h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True, correction=0) + eps) * w + s,
        "eps was added to the root; it is added to the variance, under the root.",
    ),
    (
        _short_mean,
        "The mean was divided by BLOCK, which counts lanes beyond the row; divide by columns.",
    ),
    (
        _padded_variance,
        "Lanes beyond the row count in the variance: after the mean is subtracted they hold -mean. Set them to 0 with "
        "tl.where(inside, ..., 0.0).",
    ),
    (lambda h, w, s, eps: normalised(h, w, torch.zeros_like(s), eps), "The shift is missing."),
    (lambda h, w, s, eps: normalised(h, torch.ones_like(w), s, eps), "The weight is missing."),
    (
        lambda h, w, s, eps: normalised(h, torch.ones_like(w), torch.zeros_like(s), eps),
        "Weight and shift are missing.",
    ),
    (
        lambda h, w, s, eps: normalised(h, w, s, 0.0),
        "eps is missing, or it is not that of the call: it is added to the variance, under the root.",
    ),
    (lambda h, w, s, eps: normalised(h, s, w, eps), "Weight and shift are swapped."),
    (lambda h, w, s, eps: h, "This is the sum itself; the second output is normalised."),
)


def _normed(found: Norm) -> Step:
    def step(h: Tensor, *args: object) -> Tensor:
        *_, weight, shift, _p, _seed, eps = args
        return found(h, weight, shift, eps)  # type: ignore[arg-type]  # the arguments of the reference

    return step


SUM = right(0, NAMES, block_end, [(_sum(found), says) for found, says in WRONG_SUMS])
NORMED = founded(
    0,
    NAMES,
    block_end,
    [_sum(found) for found, _ in WRONG_SUMS],
    follows(1, 0, NAMES, _normed(normalised), [(_normed(found), says) for found, says in WRONG_NORMS]),
)


def _slipped(run: KernelRun, case: Case) -> None:
    """Demand a normalised sum with a known slip, which costs the checks of this output."""
    found, given, exact = run.outputs[1], run.outputs[0].double(), promoted(case).args
    wrong = (_normed(norm)(given, *exact) for norm, _ in WRONG_NORMS[:-1])  # the last one is no norm
    if run.returned[1].stored < run.returned[1].elements or not any(same(found, each) for each in wrong):
        raise CheckFailedError("not a known slip")


NEAR = either(NORMED, _slipped, resembles(block_end, NAMES))
TRAFFIC = (NEAR, once((0, 2)), apart)


def inputs(
    draw: Draw,
    rows: int,
    columns: int,
    *,
    p: float = 0.0,
    mean: float = 0.0,
    seed: int | None = None,
    unlike: bool = False,
) -> tuple[Tensor | float | int, ...]:
    """Return x, bias, residual, weight, shift, p, seed and eps, which is large enough to be seen when it is missing.

    With `unlike`, each row of the residual has a mean and a deviation of its own.
    """
    return (
        draw.normal(rows, columns),
        draw.normal(columns),
        unlike_rows(draw, draw.normal(rows, columns), mean=4.0) if unlike else draw.normal(rows, columns) + mean,
        draw.normal(columns) + 2,
        draw.normal(columns),
        p,
        draw.integer(1, 2**31 - 1) if seed is None else seed,
        draw.integer(20, 60) / 1000,
    )


def unlike_rows(draw: Draw, rows: Tensor, *, mean: float) -> Tensor:
    """Give each row a deviation from 0.3 to 4, and a mean of up to `mean`: no constants are about right for all."""
    count = len(rows)
    scales = torch.tensor([draw.choice((0.3, 1.0, 4.0)) for _ in range(count)])
    means = torch.tensor([draw.choice((-mean, mean)) for _ in range(count)])
    return rows * scales[:, None] + means[:, None]


def sized(*sizes: tuple[int, int], p: Sequence[float] = (0.0,), unlike: bool = False) -> Callable[[Draw], list[Case]]:
    """Return matrices of these sizes, each with a drawn one of these probabilities; for `unlike` see `inputs`."""

    def cases(draw: Draw) -> list[Case]:
        found = []
        for rows, columns in sizes:
            share = draw.choice(p)
            label = f"for a matrix of {rows} × {columns}, p = {share}"
            found.append(Case(inputs(draw, rows, columns, p=share, unlike=unlike), label=label))
        return found

    return cases


def _check(name: str, category: str, points: float, cases: Callable[[Draw], list[Case]], *demands: Demand) -> Check:
    return Check(name, category, points, holds(cases, block_end, NAMES, *demands))


EXERCISE = Exercise(
    title="A pre-norm block end in one kernel",
    kind=Kind.TRITON,
    entry_point="add_norm",
    points=16,
    bandwidth=Bandwidth(
        block_end,
        (MATRIX, ROW, MATRIX, ROW, ROW),
        (MATRIX, MATRIX),
        (0.1, 12_345, 1e-5),
    ),
    hints=(
        "One program has one row, so sums over the row stay in it. Write down in order: load, add the bias, drop, add "
        "the residual, store, normalise, store.",
        "The position of an element is row * columns + column, in the random number and in both stores. x and residual "
        "have strides of their own. tl.where(keep, branch / (1 - p), 0.0) drops.",
        "h = residual + tl.where(tl.rand(seed, at) >= p, (x + bias) / (1 - p), 0.0). The mean is tl.sum(h, axis=0) / "
        "columns, centred is tl.where(inside, h - mean, 0.0), and the variance is the mean of its squares.",
    ),
    checks=(
        _check("the sum, nothing dropped", "sum", 2.0, sized((6, 32), (4, 50)), SUM),
        _check("the normalised sum, nothing dropped", "normalised sum", 2.0, sized((6, 32), (4, 50)), NORMED),
        _check(
            "what is dropped, and how the rest is scaled", "dropout", 3, sized((16, 32), (9, 50), p=(0.1, 0.4)), SUM
        ),
        Check(
            "each element of x and residual read once, each output written once",
            "loads and stores",
            2,
            holds(sized((12, 60), p=(0.1,), unlike=True), block_end, NAMES, *TRAFFIC, shared_out(2)),
        ),
        _check("no access outside of the tensors", "accesses", 0.5, sized((5, 50), (9, 33), unlike=True), inside, NEAR),
    ),
)
