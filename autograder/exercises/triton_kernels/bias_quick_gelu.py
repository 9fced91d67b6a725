"""Exercise 12.2: add a bias and apply an activation in one kernel, on a matrix of any strides."""

from collections.abc import Callable, Sequence

import torch

from autograder.host.bandwidth import Bandwidth
from autograder.host.checks.kernel_checks import (
    Cases,
    apart,
    holds,
    inside,
    loads_at_most,
    resembles,
    right_values,
    shared_out,
    stores_at_most,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.triton import KernelRun, TritonAnswer
from autograder.host.traced import TensorSpec

NAMES = ("the output",)
MOST_OFF = 0.005  # of the elements; a kernel that computes in float32 gives equal numbers in both runs
LEAST_CLOSE = 1e-4  # of the largest number, for outputs in float32


def biased(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the reference: z * sigmoid(1.702 z) of z = x + bias, which stands for GELU in some models."""
    z = x.float() + bias.float() if x.dtype is not torch.float64 else x + bias
    return (z * torch.sigmoid(1.702 * z)).to(x.dtype)


def _rows_as_bias(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return biased(x, bias.repeat(len(x))[: len(x)].unsqueeze(1))


MISCONCEPTIONS = (
    Misconception(
        lambda x, b: (x + b) * torch.sigmoid(x + b), "This is SiLU: the sigmoid here gets 1.702 times the sum."
    ),
    Misconception(
        lambda x, b: torch.nn.functional.gelu(x + b), "This is GELU itself: the task asks for z * sigmoid(1.702 * z)."
    ),
    Misconception(lambda x, b: torch.sigmoid(1.702 * (x + b)), "This is the sigmoid alone: multiply it by z."),
    Misconception(lambda x, b: x * torch.sigmoid(1.702 * (x + b)), "The sigmoid is multiplied by x; z is x + bias."),
    Misconception(lambda x, b: biased(x, 0 * b), "The bias is missing: z is x + bias."),
    Misconception(_rows_as_bias, "The bias was taken by the number of the row: entry j belongs to column j of x."),
)
RIGHT = right_values(biased, NAMES, MISCONCEPTIONS)
NEAR = resembles(biased, NAMES)


def matrix(draw: Draw, rows: int, columns: int, dtype: torch.dtype = torch.float32, *, of_bias: float = 1.0) -> Case:
    """Return a matrix with neighbours in memory, and its bias, with numbers about as large as `of_bias`."""
    args = draw.normal(rows, columns, dtype=dtype, scale=2), draw.normal(columns, dtype=dtype, scale=of_bias)
    return Case(args, label=f"with {rows} × {columns} elements of {str(dtype).removeprefix('torch.')}")


def _even(draw: Draw) -> list[Case]:
    return [matrix(draw, 16, 128), matrix(draw, draw.choice((72, 96)), 64)]


def _uneven(draw: Draw) -> list[Case]:
    return [matrix(draw, draw.choice((5, 7, 9, 11)), draw.integer(65, 99))]  # no block of rows is full


def half(draw: Draw) -> list[Case]:
    """Return a matrix in half precision."""
    return [matrix(draw, 12, draw.integer(60, 70), torch.float16)]


def large(draw: Draw) -> list[Case]:
    """Return one matrix on which accesses are counted; a row of it fits into a block.

    Its bias is large, so that no row is about right without it.
    """
    return [matrix(draw, 64, draw.choice((96, 128)), of_bias=6.0)]


def _loads(case: Case) -> int:
    x, _ = case.args
    return int(x.numel()) * 5 // 4


def computes_in_float32(
    cases: Cases, reference: Reference, names: Sequence[str], function: str = ""
) -> Callable[[TritonAnswer, Draw], None]:
    """Return a check that outputs for float16 are those for the same numbers in float32, rounded once.

    Both are the launcher's own, so that a slip in its formula costs nothing here.
    """

    def run(answer: TritonAnswer, draw: Draw) -> None:
        given = list(cases(draw))
        holds(lambda _: given, reference, names, resembles(reference, names), function=function)(answer, draw)
        for case in given:
            wide = Case(tuple(map(_widened, case.args)), label=case.label)
            narrow, exact = answer.run(case, function), answer.run(wide, function)
            _require_shapes(exact, narrow, names, case)
            for found, right, name in zip(narrow.outputs, exact.outputs, names, strict=True):
                _require_rounded_once(found, right, name, case)

    return run


def _widened(arg: object) -> object:
    return arg.float() if isinstance(arg, torch.Tensor) else arg


def _require_shapes(exact: KernelRun, narrow: KernelRun, names: Sequence[str], case: Case) -> None:
    found, expected = ([tuple(output.shape) for output in run.outputs] for run in (exact, narrow))
    if found != expected:
        raise CheckFailedError(
            f"For the same numbers in float32, the launcher returned tensors of the shapes {found}{case.where}; "
            f"expected {expected}, as for float16: {', '.join(names)}."
        )


def _require_rounded_once(found: torch.Tensor, right: torch.Tensor, name: str, case: Case) -> None:
    if found.dtype is torch.float16:
        off = int((found != right.to(torch.float16)).sum())
    else:
        right = right.double()  # a launcher may return any dtype here
        off = int(((found - right).abs() > LEAST_CLOSE * right.abs().max()).sum())
    if off > MOST_OFF * found.numel():
        raise CheckFailedError(
            f"{off} of {found.numel()} numbers of {name}{case.where} are not what the same launcher gives for the same "
            "numbers in float32, rounded once. Convert each block right after its load, .to(tl.float32); only the "
            "store converts back."
        )


RARELY = (
    "each of x once, and each of the bias once for a block of rows. Let a program load its "
    "part of the bias once and use it "
    "for at least four rows."
)
COUNTED: Cases = large

EXERCISE = Exercise(
    title="Bias and activation",
    kind=Kind.TRITON,
    entry_point="bias_quick_gelu",
    points=10,
    bandwidth=Bandwidth(biased, (TensorSpec((16_384, 1024)), TensorSpec((1024,))), (TensorSpec((16_384, 1024)),)),
    hints=(
        "A program takes some rows and all columns: rows[:, None] and columns[None, :] give a block of two dimensions, "
        "and the mask is the conjunction of two.",
        "Load the bias with the block of columns alone, then add bias[None, :]. Convert both to tl.float32 right after "
        "the load, and back to the output's dtype in the store.",
        "x_ptr + rows[:, None] * row_stride + columns[None, :] * column_stride, with x.stride(0) "
        "and x.stride(1) from the "
        "launcher; COLUMNS=triton.next_power_of_2(x.shape[1]), ROWS=8, and a grid of (triton.cdiv(n_rows, 8),).",
    ),
    checks=(
        Check("the values", "values", 1, holds(_even, biased, NAMES, RIGHT)),
        Check("float16 in, float32 inside", "half precision", 1.5, computes_in_float32(half, biased, NAMES)),
        Check(
            "no access outside, no element shared", "accesses", 0.5, holds(_uneven, biased, NAMES, inside, apart, NEAR)
        ),
        Check(
            "loads of elements",
            "loads",
            3,
            holds(COUNTED, biased, NAMES, NEAR, loads_at_most(_loads, RARELY, nothing=1.6)),
        ),
        Check(
            "several programs, and each element stored once",
            "loads",
            0.5,
            holds(
                COUNTED,
                biased,
                NAMES,
                NEAR,
                shared_out(2),
                stores_at_most(lambda case: case.args[0].numel(), "one for an element."),
            ),
        ),
    ),
)
