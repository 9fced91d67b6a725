"""Exercise 12.3: a stable softmax of rows that are wider than the block."""

import torch

from autograder.host.bandwidth import Bandwidth
from autograder.host.checks.kernel_checks import (
    apart,
    holds,
    inside,
    loads_at_most,
    narrow,
    resembles,
    right_values,
    shared_out,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.traced import TensorSpec

NAMES = ("the softmax",)
BLOCK = 128
APART = (1500.0, 3000.0)  # more than the exponential of a number in double precision holds, 745 below and 709 above
REGISTERS = 24 * BLOCK  # pointers and masks included; a row of `_long` has at least 130 blocks


def shares(x: torch.Tensor) -> torch.Tensor:
    """Return the reference."""
    return torch.softmax(x, dim=-1)


def _in_blocks(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(BLOCK, dim=-1)], dim=-1)


def _by_last_block(x: torch.Tensor) -> torch.Tensor:
    largest = x.amax(-1, keepdim=True)
    last = torch.exp(x - largest).split(BLOCK, dim=-1)[-1].sum(-1, keepdim=True)
    return torch.exp(x - largest) / last


def _by_first_block(x: torch.Tensor) -> torch.Tensor:
    largest = x[:, :BLOCK].amax(-1, keepdim=True)
    return torch.exp(x - largest) / torch.exp(x[:, :BLOCK] - largest).sum(-1, keepdim=True)


def _with_zeros(x: torch.Tensor) -> torch.Tensor:
    padding = torch.zeros(len(x), -x.shape[-1] % BLOCK, dtype=x.dtype)
    return torch.softmax(torch.cat([x, padding], -1), -1)[:, : x.shape[-1]]


def _overflowing(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x.float())
    return powers / powers.sum(-1, keepdim=True)


MISCONCEPTIONS = (
    Misconception(
        _in_blocks, "Each block of a row sums to 1 by itself: the sum must go over all blocks of the row first."
    ),
    Misconception(
        _by_last_block, "Every element is divided by the sum of the last block: add up the sums of all blocks."
    ),
    Misconception(
        _by_first_block, "Every element is divided by the sum of the first block: add up the sums of all blocks."
    ),
    Misconception(
        _with_zeros,
        "Lanes outside of the row count in the sum, as numbers 0: give them -inf by other=-float('inf'), whose "
        "exponential is 0.",
    ),
    Misconception(
        _overflowing, "exp of a large number overflows: subtract the largest number of the row before the exponential."
    ),
    Misconception(lambda x: torch.softmax(x, dim=0), "The columns sum to 1; a program normalises a row."),
    Misconception(lambda x: torch.exp(x - x.amax(-1, keepdim=True)), "The exponentials are not divided by their sum."),
    Misconception(lambda x: torch.log_softmax(x, -1), "This is the logarithm of the softmax."),
)
RIGHT = right_values(shares, NAMES, MISCONCEPTIONS)
NEAR = resembles(shares, NAMES)


def rows_of(draw: Draw, rows: int, columns: int, scale: float = 2.0) -> Case:
    """Return rows of normal numbers."""
    return Case((draw.normal(rows, columns, scale=scale),), label=f"with {rows} rows of {columns}")


def _short(draw: Draw) -> list[Case]:
    return [rows_of(draw, 5, BLOCK), rows_of(draw, 3, draw.integer(40, 90))]


def _wide(draw: Draw) -> list[Case]:
    return [
        rows_of(draw, 3, 4 * BLOCK),
        rows_of(draw, 2, draw.integer(300, 500)),
        rows_of(draw, 2, 1400 + draw.integer(0, 99)),
    ]


def _long(draw: Draw) -> list[Case]:
    """Return rows that fit into no registers; one has a peak, another some neighbours above the rest."""
    columns = draw.integer(130, 140) * BLOCK + draw.integer(1, 99)
    x = draw.normal(4, columns, scale=2) + draw.choice((150.0, 300.0))
    one, some = draw.sample(range(4), 2)
    x[one, draw.integer(2 * BLOCK, columns - 1)] += draw.choice(APART)
    x[some] = draw.normal(columns, scale=2) - draw.choice(APART)
    first = draw.integer(2 * BLOCK, columns - 50)
    x[some, first : first + draw.integer(20, 50)] = draw.normal(1)  # near 0, where a logarithm of the sum is exact
    return [Case((x,), label=f"with 4 rows of {columns}")]


def _far(draw: Draw) -> list[Case]:
    large = draw.normal(3, 300) + draw.choice((200.0, 500.0))
    apart = draw.normal(3, 300) + draw.choice((-500.0, 200.0))
    for row in apart:
        row[(first := draw.integer(100, 240)) : first + draw.integer(20, 50)] += draw.choice(APART)
    return [
        Case((large,), label="with numbers of some hundreds"),
        Case((apart,), label="with numbers that are thousands apart"),
    ]


def _loads(case: Case) -> int:
    rows, columns = case.args[0].shape
    return int(rows * (2 * columns + columns // 32 + 16))  # a few for a block


TWICE = (
    "two for an element, and a few for a block. One pass finds the largest number and the sum "
    "together: when the largest grows, multiply the sum "
    "by exp(old - new). The second pass writes."
)

EXERCISE = Exercise(
    title="Softmax of long rows",
    kind=Kind.TRITON,
    entry_point="long_softmax",
    points=12,
    refused=("tl.softmax",),
    bandwidth=Bandwidth(shares, (TensorSpec((8192, 2048)),), (TensorSpec((8192, 2048)),)),
    hints=(
        "A program takes one row and goes over it in blocks: for start in range(0, n_columns, "
        "BLOCK). What must it know "
        "before it can write the first share?",
        "Keep the largest number so far and the sum of exp(x - largest) so far. A lane outside of the row must change "
        "neither: other=-float('inf').",
        "new = tl.maximum(largest, tl.max(block, axis=0)), then total = total * tl.exp(largest - "
        "new) + tl.sum(tl.exp(block "
        "- new), axis=0). While new is -inf both differences are NaN: take 0.0 in its place there.",
    ),
    checks=(
        Check("rows that fit into a block", "values", 1, holds(_short, shares, NAMES, RIGHT)),
        Check(
            "rows wider than the block",
            "wide rows",
            2,
            holds(_wide, shares, NAMES, RIGHT, narrow(BLOCK, live=REGISTERS)),
        ),
        Check("large numbers", "large values", 1, holds(_far, shares, NAMES, RIGHT)),
        Check(
            "no access outside, no element shared", "accesses", 0.5, holds(_wide, shares, NAMES, inside, apart, NEAR)
        ),
        Check(
            "loads of elements",
            "loads",
            3,
            holds(
                _long,
                shares,
                NAMES,
                RIGHT,  # a share that is only about right needs no second look at most of a row
                narrow(BLOCK, live=REGISTERS),
                shared_out(2),
                loads_at_most(_loads, TWICE),
            ),
        ),
    ),
)
