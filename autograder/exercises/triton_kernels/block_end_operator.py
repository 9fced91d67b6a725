"""Exercise 12.7: the kernels as one operator of PyTorch, with PyTorch's own formula where Triton cannot run.

The text of the operator runs where no other Python of the student is, and where Triton cannot run. There the checks
call it through the dispatcher, by its name: the formula in PyTorch, the derivative, the form of the outputs, and what
is kept for backward. In one check Triton seems to run, and functions of the worker stand in for the kernels.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.operator_promises import formed, honest
from autograder.exercises.triton_kernels.block_end_forward import NAMES, WRONG_SUMS, block_end, inputs, normalised
from autograder.host.checks.function_checks import (
    Gradients,
    Mistake,
    Run,
    Tensors,
    agrees,
    gradients_agree,
    leaves_inputs_alone,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.kinds.misconceptions import Misconception

TENSORS = ("x", "bias", "residual", "weight", "shift")
BY_KERNEL = TENSORS[:3]  # their gradients are what the kernel of backward returns, and a sum over its rows
OPERATOR = "torch.ops.lesson12.add_norm"
BEFORE_ANOTHER = "before another call torch.ops.lesson12.add_norm"
ON_TRITON, KEPT = "on Triton torch.ops.lesson12.add_norm", "kept memory of torch.ops.lesson12.add_norm"


def _wrong_sum(found: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    def formula(*args: object) -> tuple[Tensor, Tensor]:
        x, bias, residual, weight, shift, p, seed, eps = args
        h = found(x, bias, residual, p, seed)
        return h, normalised(h, weight, shift, eps)  # type: ignore[arg-type]  # the arguments of the reference

    return formula


MISTAKES = tuple(Misconception(_wrong_sum(found), says) for found, says in WRONG_SUMS)


def _unmasked(gradients: Gradients, cotangents: Tensors, _: Case) -> Tensors:
    by_residual, *others = gradients(cotangents)[2:]
    return by_residual, by_residual.sum(0), by_residual, *others


def _swapped(gradients: Gradients, cotangents: Tensors, _: Case) -> Tensors:
    *others, by_weight, by_shift = gradients(cotangents)
    return *others, by_shift, by_weight


def _unscaled(gradients: Gradients, cotangents: Tensors, case: Case) -> Tensors:
    by_x, by_bias, *others = gradients(cotangents)
    return by_x * (1 - case.args[5]), by_bias * (1 - case.args[5]), *others


IN_BACKWARD: Sequence[Mistake] = (
    (
        lambda gradients, of, _: gradients([torch.zeros_like(of[0]), of[1]]),
        "The gradient of the sum itself is missing: h goes on to the next layer, so grad_h is added.",
    ),
    (_unmasked, "Backward drops nothing: the gradients by x and bias go through forward's mask."),
    (_unscaled, "Backward does not scale: forward divides by 1 - p, and so do the gradients by x and bias."),
    (_swapped, "The gradients of weight and shift changed places."),
)


def sized(*sizes: tuple[int, int], p: float = 0.0) -> Callable[[Draw], Iterator[Case]]:
    """Return calls of the operator on matrices of these sizes."""

    def cases(draw: Draw) -> Iterator[Case]:
        for rows, columns in sizes:
            label = f"for a matrix of {rows} × {columns}, p = {p}"
            yield Case(inputs(draw, rows, columns, p=p), label=label)

    return cases


def views(draw: Draw) -> Iterator[Case]:
    """Return an x that is transposed, and a residual that is expanded."""
    args = list(inputs(draw, 6, 20))
    args[0], args[2] = draw.normal(20, 6).t(), draw.normal(20).expand(6, 20)
    yield Case(tuple(args), label="for views with strides")


def by_name(check: Run, *, name: str = OPERATOR, told: str = "") -> Run:
    """Return the check with the operator called through the dispatcher; `told` ends the message of a failure."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        try:
            check(honest(answer, name), draw)
        except CheckFailedError as error:
            raise CheckFailedError(f"{error} {told}".rstrip(), changes=error.changes) from None

    return run


def expanded(draw: Draw, output: Tensor) -> Tensor:
    """Return a gradient as a sum over rows passes it on: one row for all."""
    return draw.normal(output.shape[1]).expand(output.shape)


def derived(cases: Callable[[Draw], Iterator[Case]]) -> Run:
    """Return a check of all gradients: alone, of expanded gradients, and with another call before backward."""
    alone = gradients_agree(block_end, cases, NAMES, TENSORS, IN_BACKWARD)
    of_expanded = gradients_agree(block_end, cases, NAMES, TENSORS, grads=expanded)
    strides = "The gradients of the outputs were expanded, with strides 0, as those of a sum are."
    kept = (
        "Between forward and backward the operator was called again: save what backward needs in `ctx`, where each "
        "call has its own."
    )

    def run(answer: CallableAnswer, draw: Draw) -> None:
        by_name(alone)(answer, draw)
        by_name(of_expanded, told=strides)(answer, draw)
        by_name(alone, name=BEFORE_ANOTHER, told=kept)(answer, draw)

    return run


def in_fp64(draw: Draw) -> Iterator[Case]:
    """Return a call in double precision."""
    args = (arg.double() if isinstance(arg, Tensor) else arg for arg in inputs(draw, 3, 20, p=0.25))
    yield Case(tuple(args), label="for tensors in float64")


def forms_hold(*cases: Callable[[Draw], Iterator[Case]]) -> Run:
    """Return a check that outputs have x's shape and are contiguous, as they are declared and as they are."""
    return formed(OPERATOR, lambda x, *_: [tuple(x.shape)] * 2, NAMES, *cases)


class Launched(torch.autograd.Function):
    """What the operator gives with the worker's stand-ins for kernels, see `autograder.worker.registered_operators`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        """Return h and y of the stand-in for `add_norm`."""
        x, bias, residual, weight, shift, p, seed, eps = args
        h = residual + p * (x + bias)
        ctx.save_for_backward(h, weight)
        ctx.rest = p, seed, eps
        return h, weight * h + shift * (seed + eps)

    @staticmethod
    def backward(ctx: Any, grad_h: Tensor, grad_y: Tensor) -> Any:
        """Return the gradients that follow from those of the stand-in for `add_norm_backward`."""
        (h, weight), (p, seed, eps) = ctx.saved_tensors, ctx.rest
        by_x, by_residual = p * grad_h + weight * h, seed * grad_y + eps * grad_h
        normed = normalised(h, torch.ones_like(weight), torch.zeros_like(weight), eps)
        return by_x, by_x.sum(0), by_residual, (grad_y * normed).sum(0), grad_y.sum(0), None, None, None


def launches(answer: CallableAnswer, draw: Draw) -> None:
    """Check that each kernel is launched where Triton runs, and that its results are passed on."""

    def cases(draw: Draw) -> Iterator[Case]:
        x, bias, residual, weight, shift, *_ = inputs(draw, 5, 12)
        yield Case((x, bias, residual, weight, shift, 0.25, 3, 0.5), label="for a matrix of 5 × 12")

    told = (
        "Here `triton_runs_on` says yes, and functions of ours stand in for your two kernels: they take "
        "(x, bias, residual, weight, shift, p, seed, eps) and (grad_h, grad_y, h, weight, p, seed, eps)."
    )
    by_name(gradients_agree(Launched.apply, cases, NAMES, BY_KERNEL), name=ON_TRITON, told=told)(answer, draw)


def keeps_little(answer: CallableAnswer, draw: Draw) -> None:
    """Check that a right backward keeps neither x nor residual, and no matrix of its own such as a mask."""
    rows, columns = 24, 40
    by_name(gradients_agree(block_end, sized((rows, columns)), NAMES, BY_KERNEL))(answer, draw)
    (case,) = sized((rows, columns), p=0.5)(draw)
    (found,) = answer.function(KEPT).call(case).outputs
    *kept, others = (int(number) for number in found.flatten().tolist())
    matrices = [name for name, keeps in zip(TENSORS, kept, strict=False) if keeps and name in ("x", "residual")]
    if others >= rows * columns:
        matrices.append(f"{others:,} bytes that are no argument and no output, such as a mask,")
    if matrices:
        raise CheckFailedError(
            f"Backward keeps {' and '.join(matrices)} alive{case.where}. Save h, which is an output and lives anyway, "
            "and weight: the rest follows from them, and the mask from the seed."
        )


def fresh(cases: Callable[[Draw], Iterator[Case]]) -> Run:
    """Return a check that outputs lie in memory of their own and inputs are not written."""
    return by_name(leaves_inputs_alone(block_end, cases, NAMES))


EXERCISE = Exercise(
    title="One operator for the block end",
    kind=Kind.CALLABLE,
    entry_point="add_norm_operator",
    points=6,
    masked=("course_lib.kernels.triton", "course_lib.fusion"),
    hints=(
        "Four parts: the operator with its two implementations, the form of its outputs, what forward saves, and the "
        "gradients.",
        "triton_runs_on(x) decides between add_norm(...) and the formula, whose sum of views takes their strides: "
        ".contiguous(). register_fake returns two empty tensors of x.shape, in x's dtype. Save h, weight, p, seed and "
        "eps: neither x nor a mask.",
        "Backward returns a gradient for each of the eight arguments, None for p, seed and eps. For bias and shift it "
        "is a sum over rows, of grad_x and of grad_y; for weight that of grad_y times the normalised h.",
    ),
    checks=(
        Check("values, nothing dropped", "values", 0.25, by_name(agrees(block_end, sized((4, 24)), NAMES))),
        Check(
            "values, with the mask of the kernels",
            "dropout",
            1,
            by_name(agrees(block_end, sized((9, 33), p=0.4), NAMES, MISTAKES)),
        ),
        Check(
            "gradients by all five tensors",
            "gradients",
            0.5,
            by_name(gradients_agree(block_end, sized((5, 24)), NAMES, TENSORS, IN_BACKWARD)),
        ),
        Check(
            "the form of the outputs, declared and real",
            "declared form",
            0.5,
            forms_hold(sized((3, 20), (7, 8)), views, in_fp64),
        ),
        Check("launches where Triton runs", "launches", 0.5, launches),
        Check("what backward keeps", "memory", 1, keeps_little),
    ),
)
