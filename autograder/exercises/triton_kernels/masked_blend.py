"""Exercise 12.1: a masked vector kernel, the blend of two vectors of any length and stride."""

import torch

from autograder.host.bandwidth import Bandwidth
from autograder.host.checks.kernel_checks import (
    Cases,
    holds,
    inside,
    loads_at_most,
    resembles,
    right_values,
    shared_out,
    stores_at_most,
    whole_blocks,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.triton import KernelRun
from autograder.host.traced import TensorSpec

NAMES = ("the blend",)


def blended(x: torch.Tensor, y: torch.Tensor, t: float) -> torch.Tensor:
    """Return the reference."""
    return torch.lerp(x, y, t)


MISCONCEPTIONS = (
    Misconception(lambda x, y, t: torch.lerp(y, x, t), "x and y are swapped: t = 0 gives x, and t = 1 gives y."),
    Misconception(lambda x, y, t: x + t * y, "This is x + t * y; the blend adds t times the difference y - x to x."),
    Misconception(
        lambda x, y, t: x + t * (y + x), "This adds t * (y + x); the blend adds t times the difference y - x."
    ),
)
RIGHT = right_values(blended, NAMES, MISCONCEPTIONS)
NEAR = resembles(blended, NAMES)


def stored_once(run: KernelRun, case: Case) -> None:
    """Demand that nothing is stored twice, and nothing beyond the output: in its place a last block has a mask."""
    elements = sum(each.elements for each in run.returned)
    if run.stores > elements:
        raise CheckFailedError(
            f"The kernels store {run.stores:,} elements{case.where}, and the output has {elements:,}. Store each once: "
            "the last block is not full, and its mask leaves out the lanes outside of the vectors."
        )


def _case(draw: Draw, length: int, label: str = "") -> Case:
    t = draw.choice((0.3, 0.35, 0.65, 0.7))  # at 0.5 x and y may be swapped, near 0 and 1 one may be missing
    x, y = draw.normal(length), draw.normal(length)
    if length == 1:  # of two signs, a single blend near 0 would be all rounding
        y = torch.copysign(y, x)
    return Case((x, y, t), label=label or f"with {length} elements")


def of_lengths(*choices: tuple[int, ...]) -> Cases:
    """Return vectors of one length out of each tuple."""
    return lambda draw: [_case(draw, draw.choice(lengths)) for lengths in choices]


EXERCISE = Exercise(
    title="Blend two vectors",
    kind=Kind.TRITON,
    entry_point="blend",
    points=6,
    bandwidth=Bandwidth(blended, (TensorSpec((1 << 24,)),) * 2, (TensorSpec((1 << 24,)),), (0.3,)),
    hints=(
        "Which numbers does one program take? Its own number times BLOCK, then BLOCK numbers from there; the last "
        "program has fewer elements than lanes.",
        "An element lies at pointer + number * stride. The mask compares the number of the element with n: the stride "
        "does not change how many elements there are.",
        "One expression counts a program's elements: its `tl.program_id` times `BLOCK`, plus a `tl.arange` of `BLOCK` "
        "lanes. Compare it with n, and give the result as `mask` to both loads and to the store. The grid is n divided "
        "by `BLOCK`, rounded up with `triton.cdiv`; the launcher passes the stride of x and of y.",
    ),
    checks=(
        Check("the values of whole blocks", "values", 1, holds(of_lengths((1024,), (2048,)), blended, NAMES, RIGHT)),
        Check(
            "no access outside of the vectors",
            "accesses",
            1,
            holds(of_lengths((79, 93), (1007, 1263)), blended, NAMES, inside, NEAR, whole_blocks, stored_once),
        ),
        Check(
            "several programs, and each element read and written once",
            "accesses",
            1.5,
            holds(
                of_lengths((4096,)),
                blended,
                NAMES,
                NEAR,
                shared_out(2),
                loads_at_most(lambda case: 2 * case.args[0].numel(), "one of each input for an element."),
                stores_at_most(lambda case: case.args[0].numel(), "one for an element."),
            ),
        ),
    ),
)
