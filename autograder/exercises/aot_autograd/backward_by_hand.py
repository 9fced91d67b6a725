"""Exercise 08.5: the backward of bias, dropout, residual and LayerNorm, written by hand and checked as a graph."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import CapturedAnswer, outside
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

Formula = Callable[..., Sequence[Tensor]]
NAMES = ("the gradient by x", "by bias", "by residual", "by weight", "by shift")
ARITHMETIC = "add sub rsub mul div neg pow sqrt rsqrt reciprocal sum mean"
FORM = "unsqueeze squeeze expand view reshape"
ALLOWED = frozenset(f"torch.ops.aten.{name}" for name in f"{ARITHMETIC} {FORM}".split())
MOST_CALLS = 40  # by hand 23 to 39, as formulas of textbooks for each statistic are written
MOST_WITH_EXPAND = 30  # autograd expands the gradient of a mean; of its graph 32 are left without repetitions
NEAR: Mapping[torch.dtype, Mapping[str, float]] = {  # by which a known mistake is told; one without eps is very close
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.float64: {"rtol": 1e-8, "atol": 1e-10},
}


Norm = Callable[[Tensor, Tensor, Tensor], Tensor]
"""LayerNorm of h with weight and shift."""


def _layer_norm(h: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(h, h.shape[-1:], weight, shift)


def truth(
    grad: Tensor,
    x: Tensor,
    bias: Tensor,
    residual: Tensor,
    kept: Tensor,
    weight: Tensor,
    *,
    norm: Norm = _layer_norm,
    drops_residual: bool = False,
) -> Sequence[Tensor]:
    """Return autograd's result; `kept` is the dropout mask divided by the share of kept elements.

    A known mistake has another `norm`, or a mask that drops elements of the residual, too.
    """
    leaves = [t.detach().clone().requires_grad_() for t in (x, bias, residual, weight, torch.zeros_like(weight))]
    with torch.enable_grad():
        inner = leaves[0] + leaves[1]
        h = (inner + leaves[2]) * kept if drops_residual else inner * kept + leaves[2]
        y = norm(h, leaves[3], leaves[4])
    return torch.autograd.grad(y, leaves, grad)


def _without_eps(*args: Tensor) -> Sequence[Tensor]:
    return truth(*args, norm=lambda h, weight, shift: F.layer_norm(h, h.shape[-1:], weight, shift, eps=0.0))


def _divided_by_less(*args: Tensor) -> Sequence[Tensor]:
    def norm(h: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
        return (h - h.mean(-1, keepdim=True)) * (h.var(-1, keepdim=True) + 1e-5).rsqrt() * weight + shift

    return truth(*args, norm=norm)


def _residual_dropped(*args: Tensor) -> Sequence[Tensor]:
    return truth(*args, drops_residual=True)


def _centred(x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    h = (x + bias) * kept + residual
    root = torch.rsqrt(h.var(-1, correction=0, keepdim=True) + 1e-5)
    return (h - h.mean(-1, keepdim=True)) * root, root


def _statistics_as_constants(
    grad: Tensor, x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor, weight: Tensor
) -> Sequence[Tensor]:
    normed, root = _centred(x, bias, residual, kept)
    inner = grad * weight * root
    return inner * kept, (inner * kept).sum(0), inner, (grad * normed).sum(0), grad.sum(0)


def _without_mask(*args: Tensor) -> Sequence[Tensor]:
    right = truth(*args)
    return right[2], right[2].sum(0), *right[2:]


def _not_summed(grad: Tensor, *args: Tensor) -> Sequence[Tensor]:
    right = truth(grad, *args)
    return right[0], right[0], right[2], grad * _centred(*args[:4])[0], grad


def _normed_term_missing(
    grad: Tensor, x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor, weight: Tensor
) -> Sequence[Tensor]:
    normed, root = _centred(x, bias, residual, kept)
    g = grad * weight
    inner = root * (g - g.mean(-1, keepdim=True))
    return inner * kept, (inner * kept).sum(0), inner, (grad * normed).sum(0), grad.sum(0)


def _mean_term_missing(
    grad: Tensor, x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor, weight: Tensor
) -> Sequence[Tensor]:
    normed, root = _centred(x, bias, residual, kept)
    g = grad * weight
    inner = root * (g - normed * (g * normed).mean(-1, keepdim=True))
    return inner * kept, (inner * kept).sum(0), inner, (grad * normed).sum(0), grad.sum(0)


def _without_weight(
    grad: Tensor, x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor, weight: Tensor
) -> Sequence[Tensor]:
    return truth(grad, x, bias, residual, kept, torch.ones_like(weight))


def _without_root(*args: Tensor) -> Sequence[Tensor]:
    _, root = _centred(*args[1:5])
    by_h = truth(*args)[2] / root
    return by_h * args[4], (by_h * args[4]).sum(0), by_h, *truth(*args)[3:]


KNOWN: tuple[tuple[Formula, str], ...] = (
    (
        _statistics_as_constants,
        "Mean and variance were taken as constants; they depend on every element of the row, which adds two terms.",
    ),
    (
        _normed_term_missing,
        "The variance was taken as a constant: normalised * mean of g * normalised is missing.",
    ),
    (_mean_term_missing, "The mean was taken as a constant: it takes the mean of g away from g."),
    (_without_weight, "The weight is missing: LayerNorm multiplies by it, so the gradient is multiplied by it first."),
    (_without_root, "The root is missing: h is divided by its deviation, and so is its gradient."),
    (_without_mask, "The mask is missing: what dropout removed, or scaled, is removed or scaled in the gradient too."),
    (_without_eps, "eps is missing: LayerNorm adds 1e-5 to the variance."),
    (_divided_by_less, "The variance was divided by n - 1; that of LayerNorm divides by n."),
    (_residual_dropped, "The mask was put on the residual as well; dropout is of x + bias alone."),
    (_not_summed, "It was not summed: a tensor that is added to all rows gets the sum of their gradients."),
)


def _summands(grad: Tensor, x: Tensor, bias: Tensor, residual: Tensor, kept: Tensor, weight: Tensor) -> list[float]:
    """Return for each gradient the largest number that is summed in it; the sums may cancel and leave far less."""
    normed, root = _centred(x, bias, residual, kept)
    inner = grad * weight * root
    return [float(t.abs().max()) for t in (inner * kept, inner * kept, inner, grad * normed, grad)]


def inputs(draw: Draw, rows: int, width: int, *, share: float = 0.7, dtype: torch.dtype = torch.float64) -> Case:
    """Return gradient of the output, x, bias, residual, kept, weight."""
    kept = draw.keep(rows, width, probability=share).to(dtype) / share
    return Case(
        (
            draw.normal(rows, width, dtype=dtype),
            draw.normal(rows, width, dtype=dtype),
            draw.normal(width, dtype=dtype),
            draw.normal(rows, width, dtype=dtype),
            kept,
            draw.normal(width, dtype=dtype),
        ),
        label=f"for {rows} rows of {width}",
    )


def gradient_right(
    numbers: Sequence[int], cases: Callable[[Draw], Iterator[Case]]
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that the given outputs of the captured backward equal autograd's; they share its points."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        found = [(case, _outputs(answer, case)) for case in cases(draw)]

        def require(number: int) -> None:
            for case, outputs in found:
                _require_gradient(outputs[number], number, case)

        share_among(numbers, require, noun="gradients")

    return run


def _outputs(answer: CapturedAnswer, case: Case) -> Sequence[Tensor]:
    artifact = _captured(answer, case)
    try:
        outputs = answer.run(artifact, case.args).outputs
    except AnswerFailedError as error:
        raise CheckFailedError(f"The captured graph does not run{case.where}: {error.message}") from None
    if len(outputs) != len(NAMES):
        raise CheckFailedError(f"backward returned {len(outputs)} tensors; expected {len(NAMES)}: {', '.join(NAMES)}.")
    return outputs


def _captured(answer: CapturedAnswer, case: Case) -> Artifact:
    """Return the captured graph; check that it has only allowed operators and few calls."""
    artifact = answer.capture(case.args, how="dispatch")
    if other := outside(artifact, ALLOWED):
        raise CheckFailedError(
            f"The graph calls {other[0].removeprefix('torch.ops.')}; write the formula with sums, means and arithmetic."
        )
    expands = artifact.count("torch.ops.aten.expand", unneeded=True) > 0
    if artifact.calls() > (MOST_WITH_EXPAND if expands else MOST_CALLS):
        raise CheckFailedError(
            f"The graph has {artifact.calls()} calls. "
            + (
                f"With an expand among them, as in a graph that autograd made, {MOST_WITH_EXPAND} are allowed. "
                "By hand, leave expand out: arithmetic broadcasts, and keepdim=True keeps the dimension of a sum."
                if expands
                else f"By hand {MOST_CALLS} are more than enough: compute root, normalised h and grad * weight once, "
                "and leave out a sum that is zero, such as that of the centred h."
            )
        )
    return artifact


def _require_gradient(output: Tensor, number: int, case: Case) -> None:
    args = case.args
    eager, exact = truth(*args)[number], truth(*(a.double() for a in args))[number]
    try:
        comparison.require_close(output, exact, eager, NAMES[number], case.where, magnitude=_summands(*args)[number])
    except CheckFailedError as error:
        for formula, says in KNOWN:
            wrong = formula(*args)[number]
            near = NEAR[eager.dtype]
            if comparison.alike(output, wrong, **near) and not comparison.alike(wrong, eager, **near):
                raise CheckFailedError(f"{NAMES[number]}: {says}") from None
        raise error from None


def _in_double(draw: Draw) -> Iterator[Case]:
    yield inputs(draw, 5, 8)
    yield inputs(draw, 3, 4, share=0.5)


EXERCISE = Exercise(
    title="A backward by hand",
    kind=Kind.CAPTURED,
    entry_point="backward",
    points=12,
    masked=("course_lib.kernels.triton", "course_lib.fusion"),
    ready_made=("torch._refs", "torch._decomp.decompositions", "torch._decomp.decompositions_for_jvp"),
    hints=(
        "Compute forward again as far as the normalised h; every gradient uses it.",
        "Let g be grad * weight. The gradient by h is root * (g - mean of g - normalised * mean of g * normalised).",
        "residual gets that, x gets it times kept; bias and weight get sums over rows.",
    ),
    checks=(
        Check("the gradient by residual", "residual", 2, gradient_right([2], _in_double)),
        Check("the gradient by x, through the mask", "x", 2, gradient_right([0], _in_double)),
        Check("the gradient by bias", "bias", 1.5, gradient_right([1], _in_double)),
        Check("the gradients by weight and shift", "weight and shift", 1.5, gradient_right([3, 4], _in_double)),
    ),
)
