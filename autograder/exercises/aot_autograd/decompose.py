"""Exercise 08.2: LayerNorm and GELU in primitives, with the gradients and the precision of the originals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer, outside, require_captured
from autograder.host.kinds.misconceptions import Misconception

ARITHMETIC = "add sub rsub mul div neg pow sqrt rsqrt reciprocal exp erf tanh sum mean amax"
FORM = "unsqueeze squeeze expand view reshape to _to_copy clone contiguous alias detach"
CANCELLED = (
    "These numbers lie far from zero. If nearer ones come out right, two large squares were subtracted that are almost "
    "equal: take the mean away first, and square what is left."
)
MOST_SUMS = 2  # of the row and of squares; PyTorch's own steps take the mean again for the variance
PRIMITIVES = frozenset(f"torch.ops.aten.{name}" for name in f"{ARITHMETIC} {FORM}".split())


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the original LayerNorm, over the last dimension, with eps 1e-5."""
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def gelu(x: Tensor) -> Tensor:
    """Return the original GELU, exact."""
    return F.gelu(x)


def _normed(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5, scale: Tensor | float = 1.0) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=eps) * scale * weight + bias


def _over_less(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Divide the variance by n - 1."""
    share = 1 - 1 / x.shape[-1]
    return _normed(x, weight, bias, eps=1e-5 * share, scale=share**0.5)


def _eps_outside(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Add eps to the root."""
    spread = x.std(-1, correction=0, keepdim=True)
    return _normed(x, weight, bias, eps=0, scale=spread / (spread + 1e-5))


def _over_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise columns."""
    return F.layer_norm(x.t(), x.shape[:1]).t() * weight + bias


@dataclass(frozen=True)
class Original:
    """A function to decompose."""

    reference: Reference
    inputs: Callable[[Draw, int, int, torch.dtype], Sequence[Tensor]]
    misconceptions: Sequence[Misconception]


ORIGINALS = {
    "layer_norm": Original(
        layer_norm,
        lambda draw, rows, width, dtype: (
            draw.normal(rows, width, dtype=dtype),
            draw.normal(width, dtype=dtype),
            draw.normal(width, dtype=dtype),
        ),
        (
            Misconception(
                _over_less,
                "The variance was divided by n - 1; LayerNorm divides by n.",
            ),
            Misconception(
                _eps_outside,
                "eps was added to the root; it belongs to the variance, below the root.",
            ),
            Misconception(lambda x, w, b: _normed(x, w, b, eps=0), "eps is missing; it is 1e-5."),
            Misconception(
                _over_rows,
                "The statistics were taken over rows; LayerNorm takes them over the last dimension.",
            ),
        ),
    ),
    "gelu": Original(
        gelu,
        lambda draw, rows, width, dtype: (2 * draw.normal(rows, width, dtype=dtype),),
        (
            Misconception(
                lambda x: F.gelu(x, approximate="tanh"), "This is the tanh approximation; the exact one uses erf."
            ),
            Misconception(lambda x: x * torch.sigmoid(x), "This is SiLU; GELU weighs x by the normal distribution."),
            Misconception(lambda x: x * 0.5 * (1 + torch.erf(x)), "erf takes x / sqrt(2), so that the deviation is 1."),
        ),
    ),
}


def wanted(
    name: str, sizes: Iterable[tuple[int, int]], dtype: torch.dtype = torch.float32, shift: float = 0.0
) -> list[Captured]:
    """Return, for each size (rows, width), what to capture from the function `name` and how to check its graph.

    Tracing by dispatch fixes the sizes in the graph, so each size needs its own capture.
    """
    original = ORIGINALS[name]

    def made(draw: Draw, rows: int, width: int) -> tuple[Tensor, ...]:
        first, *rest = original.inputs(draw, rows, width, dtype)
        if shift:  # with eighths, the mean over a power of two is exact, so only a wrong formula rounds much
            first = (8 * first).round() / 8 + shift
        return (first, *rest)

    return [
        Captured(
            original.reference,
            lambda draw, r=rows, w=width: made(draw, r, w),  # type: ignore[misc]
            lambda draw, r=rows, w=width: [Case(made(draw, r, w), label=f"for {r} rows of {w}")],  # type: ignore[misc]
            member=name,
            how="dispatch",
            misconceptions=original.misconceptions,
            reason=CANCELLED if shift and name == "layer_norm" else "",
        )
        for rows, width in sizes
    ]


def in_primitives(*several: Captured, gradients: bool = False) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that every graph has only primitives and gives the original's result."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for each in several:
            artifact = require_captured(answer, each, draw, gradients=gradients)
            if other := outside(artifact, PRIMITIVES):
                raise CheckFailedError(
                    f"`{each.member}`: the graph calls {other[0].removeprefix('torch.ops.')}, which is no primitive of "
                    "the list."
                )
            sums = [call.packet for call in artifact.called.values() if call.packet.endswith((".sum", ".mean"))]
            if len(sums) > MOST_SUMS:
                raise CheckFailedError(
                    f"`{each.member}`: the graph sums {len(sums)} times; {MOST_SUMS} are enough. Keep the difference "
                    "from the mean: the variance is the mean of its squares, and the result needs it, too."
                )

    return run


def rounds_once(*several: Captured) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that the mean error of 16-bit graphs is about one rounding, as for the originals."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        in_primitives(*several)(answer, draw)
        for each in several:
            artifact = answer.capture(each.example(draw), member=each.member, how=each.how)
            (case,) = each.cases(draw)
            (output,) = answer.run(artifact, case.args).outputs
            exact = each.reference(*(a.double() for a in case.args))
            found = float((output.double() - exact).abs().mean())
            usual = float((each.reference(*case.args).double() - exact).abs().mean())
            if found > 1.2 * usual:
                raise CheckFailedError(
                    f"`{each.member}` is off by {found / usual:.1f} times as much as the original on 16-bit inputs: "
                    "compute in float32, and round once at the end."
                )

    return run


SIZES = ((5, 8), (2, 33))
EXERCISE = Exercise(
    title="Decompose LayerNorm and GELU",
    kind=Kind.CAPTURED,
    entry_point="decomposed",
    points=12,
    masked=("course_lib.fusion",),
    ready_made=("torch._refs", "torch._decomp.decompositions", "torch._decomp.decompositions_for_jvp"),
    hints=(
        "Write the formulas on paper first: mean, centred, mean of squares, root, scale, shift.",
        "Both originals compute 16-bit inputs in float32 and round once, at the end: x.to(torch.float32) first.",
        "GELU is x times the share of a normal distribution below x: half of one plus erf of x over sqrt(2).",
    ),
    checks=(
        Check("`layer_norm` in primitives", "LayerNorm", 2, in_primitives(*wanted("layer_norm", SIZES))),
        Check("`gelu` in primitives", "GELU", 2, in_primitives(*wanted("gelu", SIZES))),
        Check(
            "gradients of both",
            "gradients",
            3,
            in_primitives(*wanted("layer_norm", SIZES[:1], torch.float64), *wanted("gelu", SIZES[:1]), gradients=True),
        ),
    ),
)
