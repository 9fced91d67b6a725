"""Exercise 12.4: LayerNorm in Triton, forward with saved statistics, and backward with all three gradients."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

from autograder.exercises.triton_kernels.bias_quick_gelu import computes_in_float32
from autograder.host.bandwidth import Bandwidth
from autograder.host.checks.kernel_checks import (
    apart,
    holds,
    inside,
    loads_at_most,
    resembles,
    right_values,
    shared_out,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.traced import TensorSpec

FORWARD = ("y", "mean", "rstd")
BACKWARD = ("grad_x", "grad_weight", "grad_bias")
GRADIENTS = "layer_norm_backward"
EPS = 1e-5


def normed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    """Return the reference of the forward kernel: the output, and two statistics of each row, never below float32."""
    exact = x if x.dtype is torch.float64 else x.float()
    mean = exact.mean(dim=1)
    rstd = torch.rsqrt(exact.var(dim=1, unbiased=False) + eps)
    return F.layer_norm(x, x.shape[1:], weight, bias, eps), mean, rstd


def gradients(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the reference of the backward kernel, by autograd; it needs no statistics."""
    leaves = [x.detach().clone().requires_grad_(), weight.detach().clone().requires_grad_()]
    bias = torch.zeros_like(weight).requires_grad_()
    return torch.autograd.grad(F.layer_norm(leaves[0], x.shape[1:], leaves[1], bias, EPS), [*leaves, bias], grad)


def _with(weight_too: bool, mean_too: bool, product_too: bool) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Return the gradients with a part of the formula for x left out."""

    def wrong(
        grad: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        right = gradients(grad, x, w, mean, rstd)
        hat = (x - mean[:, None]) * rstd[:, None]
        scaled = grad * w if weight_too else grad
        first = scaled.mean(1, keepdim=True) if mean_too else 0
        second = hat * (scaled * hat).mean(1, keepdim=True) if product_too else 0
        return (rstd[:, None] * (scaled - first - second), *right[1:])

    return wrong


def _unbiased(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    mean, rstd = x.mean(dim=1), torch.rsqrt(x.var(dim=1) + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


def _eps_outside(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    mean, rstd = x.mean(dim=1), 1 / (x.std(dim=1, unbiased=False) + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


def _padded(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    n, mean = x.shape[1], x.mean(dim=1)
    more = ((1 << max(0, n - 1).bit_length()) - n) * mean**2  # the lanes of the block outside of the row
    rstd = torch.rsqrt(x.var(dim=1, unbiased=False) + more / n + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


OF_FORWARD = (
    Misconception(_unbiased, "The variance is divided by n - 1; LayerNorm divides by n."),
    Misconception(
        _padded,
        "Lanes outside of the row count in the variance: after the mean is subtracted they hold -mean. Set them to 0 "
        "with tl.where(inside, x - mean, 0.0).",
    ),
    Misconception(
        lambda *a: _eps_outside(*a), "eps is added to the deviation; it is added to the variance, inside of the root."
    ),
    Misconception(
        lambda x, w, b, eps: (normed(x, w, 0 * b, eps)[0], *normed(x, w, b, eps)[1:]),
        "The bias of the norm is missing.",
    ),
)
OF_BACKWARD = (
    Misconception(
        _with(False, True, True), "grad is not multiplied by the weight before it goes back through the norm."
    ),
    Misconception(_with(True, False, True), "The mean of weight * grad over the row is not subtracted."),
    Misconception(
        _with(True, True, False), "The part through the variance is missing: x̂ times the mean of weight * grad * x̂."
    ),
    Misconception(
        _with(True, False, False), "Mean and variance are taken for constants; both depend on every x of the row."
    ),
)


def forward_case(x: torch.Tensor, draw: Draw, label: str) -> Case:
    """Return a call of the forward launcher."""
    columns, eps = x.shape[1], draw.integer(20, 60) / 1000  # large enough to be seen
    return Case((x, draw.normal(columns, dtype=x.dtype), draw.normal(columns, dtype=x.dtype), eps), label=label)


def backward_case(grad: torch.Tensor, x: torch.Tensor, draw: Draw, label: str) -> Case:
    """Return a call of the backward launcher, with the statistics that the forward one would have saved."""
    weight = draw.normal(x.shape[1], dtype=x.dtype)
    _, mean, rstd = normed(x.double(), weight.double(), weight.double(), EPS)
    return Case((grad, x, weight, mean.float(), rstd.float()), label=label)


def forward_of(rows: int, columns: int, draw: Draw) -> Case:
    """Return a call of the forward launcher on numbers of mean 0.5."""
    return forward_case(draw.normal(rows, columns) + 0.5, draw, f"with {rows} rows of {columns}")


def backward_of(rows: int, columns: int, draw: Draw) -> Case:
    """Return a call of the backward launcher on numbers of mean 0.5."""
    return backward_case(
        draw.normal(rows, columns), draw.normal(rows, columns) + 0.5, draw, f"with {rows} rows of {columns}"
    )


def _forward(draw: Draw) -> list[Case]:
    return [forward_of(8, 64, draw), forward_of(draw.integer(3, 9), draw.integer(70, 99), draw)]


def half(draw: Draw) -> list[Case]:
    """Return a matrix in half precision, whose sums of squares float16 does not hold exactly."""
    return [forward_case((draw.normal(6, 80) * 8).half(), draw, "with float16")]


def _tall(draw: Draw) -> list[Case]:
    return [forward_of(24, draw.integer(70, 99), draw)]


def _backward(draw: Draw) -> list[Case]:
    return [backward_of(16, 64, draw), backward_of(draw.integer(5, 13), draw.integer(70, 99), draw)]


def many_rows(draw: Draw) -> list[Case]:
    """Return a backward call with more rows than a launch should have programs."""
    return [backward_of(64, 96, draw)]


OF_VECTORS = (
    Misconception(
        lambda *a: (gradients(*a)[0], *gradients(*a)[:0:-1]), "The gradients of weight and bias changed places."
    ),
    Misconception(
        lambda g, x, w, m, r: (gradients(g, x, w, m, r)[0], (g * x).sum(0), g.sum(0)),
        "The gradient of the weight is the sum of grad * x̂ over all rows; x was not normalised here.",
    ),
    Misconception(
        lambda g, x, w, m, r: (*gradients(g, x, w, m, r)[:2], (g * w).sum(0)),
        "The gradient of the bias is the sum of grad over all rows; it was multiplied by the weight.",
    ),
)
FORWARD_RIGHT, FORWARD_NEAR = right_values(normed, FORWARD, OF_FORWARD), resembles(normed, FORWARD)
BACKWARD_RIGHT, BACKWARD_NEAR = (
    right_values(gradients, BACKWARD, (*OF_BACKWARD, *OF_VECTORS)),
    resembles(gradients, BACKWARD),
)
BY_X = right_values(gradients, BACKWARD, OF_BACKWARD, only=(0,))
BY_VECTORS = right_values(gradients, BACKWARD, OF_VECTORS, only=(1, 2))


def _forward_loads(case: Case) -> int:
    return int(3 * case.args[0].numel())


ONCE = "each of x once, and weight and bias once for a row at most. A row fits into a block, so keep it in registers."

EXERCISE = Exercise(
    title="LayerNorm forward and backward",
    kind=Kind.TRITON,
    entry_point="layer_norm",
    points=18,
    bandwidth=Bandwidth(
        normed,
        (TensorSpec((16_384, 1024)), TensorSpec((1024,)), TensorSpec((1024,))),
        (TensorSpec((16_384, 1024)), TensorSpec((16_384,)), TensorSpec((16_384,))),
        (EPS,),
    ),
    hints=(
        "Forward: a program takes a row. The mean first, then the variance of the differences, and outside of the row "
        "the difference must be 0. Backward: which sums go along a row, and which go over all rows?",
        "grad_x needs two means over a row, of g = grad * weight and of g * x̂: rstd * (g - mean(g) - x̂ * mean(g * x̂)). "
        "The sums for weight and bias: a few programs take every P-th row each, and write one row of partial sums.",
        "for row in range(tl.program_id(0), n_rows, P): add grad * x̂ and grad to two blocks "
        "that start as tl.zeros. Store "
        "them to row tl.program_id(0) of two matrices (P, n_columns); a second kernel adds the P rows.",
    ),
    checks=(
        Check("forward: the values", "values", 1, holds(_forward, normed, FORWARD, FORWARD_RIGHT)),
        Check(
            "forward: float16 in, float32 inside",
            "half precision",
            2,
            computes_in_float32(half, normed, FORWARD),
        ),
        Check(
            "backward: the gradient of x",
            "gradients",
            2,
            holds(_backward, gradients, BACKWARD, BY_X, function=GRADIENTS),
        ),
        Check(
            "backward: the gradients of weight and bias",
            "gradients",
            1,
            holds(_backward, gradients, BACKWARD, BY_VECTORS, function=GRADIENTS),
        ),
        Check(
            "forward: no access outside, no element shared",
            "accesses",
            0.25,
            holds(_forward, normed, FORWARD, inside, apart, FORWARD_NEAR),
        ),
        Check(
            "backward: no access outside",
            "accesses",
            0.25,
            holds(_backward, gradients, BACKWARD, inside, BACKWARD_NEAR, function=GRADIENTS),
        ),
        Check(
            "backward: sums in a fixed order",
            "determinism",
            4,
            holds(many_rows, gradients, BACKWARD, apart, shared_out(2), BACKWARD_NEAR, function=GRADIENTS),
        ),
        Check(
            "forward: loads of elements",
            "loads",
            0.5,
            holds(_tall, normed, FORWARD, FORWARD_NEAR, shared_out(2), loads_at_most(_forward_loads, ONCE)),
        ),
    ),
)
