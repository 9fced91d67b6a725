"""Exercise 12.6: the backward of the pre-norm block end, which computes the mask again and reads no x."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from autograder.exercises.row_kernel_checks import Formula, Step, either, follows, founded, once, right
from autograder.exercises.triton_kernels.block_end_forward import kept, normalised, unlike_rows
from autograder.host.checks.kernel_checks import Demand, apart, holds, inside, resembles, shared_out
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, promoted
from autograder.host.kinds.triton import KernelRun

NAMES = ("the gradient by x", "the gradient by residual")


def gradients(
    grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the reference, by autograd: h is residual + dropout(x + bias), y is the normalised h."""
    leaf = h.detach().clone().requires_grad_()
    with torch.enable_grad():
        y = normalised(leaf, weight, torch.zeros_like(weight), eps)
    by_residual = grad_h + torch.autograd.grad(y, leaf, grad_y)[0]
    return dropped(by_residual, p, seed), by_residual


Scaling = Callable[[Tensor, float, int], Tensor]
OfRows = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


def dropped(g: Tensor, p: float, seed: int) -> Tensor:
    """Return dropout's backward: what forward kept, scaled."""
    return g * kept(g, p, seed).to(g.dtype) / (1 - p)


def _scaled(scaling: Scaling) -> Step:
    """Return the step from the gradient by residual to that by x."""

    def step(by_residual: Tensor, *args: object) -> Tensor:
        *_, p, seed, _eps = args
        return scaling(by_residual, p, seed)  # type: ignore[arg-type]  # the arguments of the reference

    return step


def _of_rows(found: OfRows) -> Formula:
    """Return the formula with another gradient by the sum."""

    def formula(
        grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, p: float, seed: int, eps: float
    ) -> Sequence[Tensor]:
        by_residual = found(grad_h, grad_y, h, weight, eps)
        return by_residual * kept(h, p, seed) / (1 - p), by_residual

    return formula


def _parts(h: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    rstd = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps)
    return (h - h.mean(-1, keepdim=True)) * rstd, rstd


def _constants(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    return grad_h + grad_y * weight * _parts(h, eps)[1]


def _fixed_variance(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    g = grad_y * weight
    return grad_h + (g - g.mean(-1, keepdim=True)) * _parts(h, eps)[1]


def _fixed_mean(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    g, (normed, rstd) = grad_y * weight, _parts(h, eps)
    return grad_h + (g - normed * (g * normed).mean(-1, keepdim=True)) * rstd


def _without_root(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    g, (normed, _) = grad_y * weight, _parts(h, eps)
    return grad_h + g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)


def _padded(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    columns, mean = h.shape[-1], h.mean(-1, keepdim=True)
    padding = (1 << max(0, columns - 1).bit_length()) - columns
    rstd = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + padding * mean**2 / columns + eps)
    g, normed = grad_y * weight, (h - mean) * rstd
    return grad_h + (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)) * rstd


def _only_of_sum(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    return grad_h


def _by_eager(grad_h: Tensor, grad_y: Tensor, h: Tensor, weight: Tensor, eps: float) -> Tensor:
    return gradients(grad_h, grad_y, h, weight, 0.0, 0, eps)[1]


WRONG_SCALING: Sequence[tuple[Scaling, str]] = (
    (lambda g, p, seed: g, "Nothing was dropped: what forward dropped has no gradient by x, and the rest is scaled."),
    (lambda g, p, seed: g * kept(g, p, seed), "It was not scaled: forward divides by 1 - p, and so does backward."),
    (
        lambda g, p, seed: g * kept(g, p, seed) * (1 - p),
        "It was multiplied by 1 - p; forward divides, and so does backward.",
    ),
    (
        lambda g, p, seed: g * ~kept(g, p, seed) / (1 - p),
        "The mask is inverted: where tl.rand is at least p, forward kept.",
    ),
    (
        lambda g, p, seed: g * kept(g, p, seed, of="column") / (1 - p),
        "All rows have the same mask; forward's position is row * columns + column.",
    ),
    (
        lambda g, p, seed: g * kept(g, p, seed, of="row * BLOCK + column") / (1 - p),
        "The position is row * BLOCK + column; forward's is row * columns + column.",
    ),
    (
        lambda g, p, seed: g * kept(g, p, 0) / (1 - p),
        "The mask is that of seed 0: pass the seed of the call to tl.rand.",
    ),
    (
        lambda g, p, seed: g * kept(g, p, seed + 1) / (1 - p),
        "This is the mask of another seed: forward's seed is needed.",
    ),
    (lambda g, p, seed: g / (1 - p), "It was scaled, and nothing was dropped."),
)
WRONG_ROWS: Sequence[tuple[OfRows, str]] = (
    (_only_of_sum, "Only the gradient of the sum is there; y depends on the sum, too."),
    (
        lambda gh, gy, h, w, eps: _by_eager(torch.zeros_like(gh), gy, h, w, eps),
        "The gradient of the sum itself is missing: h goes on to the next layer, so grad_h is added.",
    ),
    (_constants, "Mean and variance were taken as constants; they depend on every element of the row: two terms."),
    (_fixed_variance, "The variance was taken as a constant: normalised * mean of g * normalised is missing."),
    (_fixed_mean, "The mean was taken as a constant: it takes the mean of g away from g."),
    (
        _padded,
        "Lanes beyond the row count in the variance: after the mean is subtracted they hold -mean. Set them to 0 with "
        "tl.where(inside, ..., 0.0).",
    ),
    (_without_root, "rstd is missing: y is multiplied by it, and so is its gradient."),
    (
        lambda gh, gy, h, w, eps: _by_eager(gh, gy, h, torch.ones_like(w), eps),
        "The weight is missing: grad_y is multiplied by it first.",
    ),
    (
        lambda gh, gy, h, w, eps: _by_eager(gh, gy, h, w, 0.0),
        "eps is missing, or it is not that of the call: it is added to the variance, as in forward.",
    ),
    (lambda gh, gy, h, w, eps: _by_eager(gy, gh, h, w, eps), "grad_h and grad_y are swapped."),
)
DROPPED = follows(0, 1, NAMES, _scaled(dropped), [(_scaled(found), says) for found, says in WRONG_SCALING])
SLIPS = [_of_rows(found) for found, _ in WRONG_ROWS]
X_RIGHT = right(0, NAMES, gradients, [])  # of an answer whose gradient by residual has a slip of its own
BY_X = either(X_RIGHT, founded(1, NAMES, gradients, SLIPS, DROPPED))
BY_RESIDUAL = right(1, NAMES, gradients, [(_of_rows(found), says) for found, says in WRONG_ROWS])
# what leaves the norm out needs neither grad_y nor h, so its loads are for nothing
OF_BOTH = founded(1, NAMES, gradients, [_of_rows(found) for found, _ in WRONG_ROWS if found != _only_of_sum], DROPPED)
NEAR = either(BY_RESIDUAL, resembles(gradients, NAMES), OF_BOTH, X_RIGHT)
FORGIVEN = [_of_rows(found) for found, _ in WRONG_ROWS if found not in (_only_of_sum, _padded)]
FORGIVEN += [_of_rows(lambda gh, gy, h, w, eps: _by_eager(gh, gy, h, w, 1e-5))]  # the default of torch


def _slipped(run: KernelRun, case: Case) -> None:
    """Demand a gradient by residual with a known slip, which costs the visible checks of this gradient."""
    exact = promoted(case).args
    traffic, found = run.returned[1], run.outputs[1].double()
    wrong = (slip(*exact)[1] for slip in FORGIVEN)
    if traffic.stored < traffic.elements or not any(torch.allclose(found, w, rtol=1e-4, atol=1e-5) for w in wrong):
        raise CheckFailedError("not a known slip")


LIKE_RESIDUAL = either(_slipped, BY_RESIDUAL)
TRAFFIC = (NEAR, once((0, 1, 2)), apart)


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
    """Return grad_h, grad_y, h, weight, p, seed and eps, which is large enough to be seen when it is missing.

    With `unlike`, each row of h has a deviation of its own.
    """
    seed = draw.integer(1, 2**31 - 1) if seed is None else seed
    rows_of_h, eps = draw.normal(rows, columns) + mean, draw.integer(20, 60) / 1000
    rows_of_h = unlike_rows(draw, rows_of_h, mean=0.0) if unlike else rows_of_h
    return draw.normal(rows, columns), draw.normal(rows, columns), rows_of_h, draw.normal(columns) + 2, p, seed, eps


def sized(*sizes: tuple[int, int], p: Sequence[float] = (0.0,), unlike: bool = False) -> Callable[[Draw], list[Case]]:
    """Return gradients of these sizes, each with a drawn one of these probabilities; for `unlike` see `inputs`."""

    def cases(draw: Draw) -> list[Case]:
        found = []
        for rows, columns in sizes:
            share = draw.choice(p)
            label = f"for a matrix of {rows} × {columns}, p = {share}"
            found.append(Case(inputs(draw, rows, columns, p=share, unlike=unlike), label=label))
        return found

    return cases


def one_path(draw: Draw) -> list[Case]:
    """Return a gradient that comes through the sum only, and one that comes through both."""
    both = inputs(draw, 5, 32)
    through_sum = (both[0], torch.zeros(5, 32), *both[2:])
    return [Case(through_sum, label="where grad_y is zero"), Case(both, label="where both come")]


def _check(name: str, category: str, points: float, cases: Callable[[Draw], list[Case]], *demands: Demand) -> Check:
    return Check(name, category, points, holds(cases, gradients, NAMES, *demands))


EXERCISE = Exercise(
    title="Its backward, without a stored mask",
    kind=Kind.TRITON,
    entry_point="add_norm_backward",
    points=12,
    hints=(
        "Which of the inputs of forward does backward need? The mask follows from seed and position, and mean and rstd "
        "from h.",
        "The gradient by h has two parts: grad_h, and what LayerNorm passes on of g = grad_y * weight, which is rstd * "
        "(g - mean of g - normalised * mean of g * normalised). The residual gets their sum.",
        "by_h = grad_h + rstd * (g - tl.sum(g, axis=0) / columns - normed * tl.sum(g * normed, axis=0) / columns), and "
        "grad_x is tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0), with at = row * columns + column.",
    ),
    checks=(
        _check("the gradient by residual, through the sum and through y", "residual", 2, one_path, BY_RESIDUAL),
        _check("the gradient by residual for rows that fill no block", "residual", 1.0, sized((4, 50)), BY_RESIDUAL),
        _check("the gradient by x, through forward's mask", "dropout", 2, sized((12, 32), (9, 50), p=(0.1, 0.4)), BY_X),
        Check(
            "each element read once, each gradient written once, no mask stored",
            "loads and stores",
            1.5,
            holds(sized((12, 60), p=(0.1,), unlike=True), gradients, NAMES, *TRAFFIC, shared_out(2)),
        ),
        _check("no access outside of the tensors", "accesses", 0.5, sized((5, 50), (9, 33), unlike=True), inside, NEAR),
    ),
)
