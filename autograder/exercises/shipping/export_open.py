"""Exercise 14.1: export programs whose batch and length stay open, within ranges."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer, captures
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

WIDTH, POSITIONS = 8, 128
LARGEST = (64, POSITIONS)
LEAST = {"positions": (1, 2), "pooled": (1, 2), "halves": (1, 4)}
"""The least batch and length of each program; export treats a half of size 1 as special."""
OPEN = ("batch", "length")
EXAMPLE = (3, 10)
ELSEWHERE = ((4, 6), (5, 14))
Sizes = tuple[int, int]


def positions(x: Tensor, table: Tensor) -> Tensor:
    """Add to x (batch, length, 8) the rows of a table (128, 8) that belong to its positions.

    One after the other, so that no export leaves the length open: with it, this function would be an answer.
    """
    return torch.stack([token + row for token, row in zip(x.unbind(1), table, strict=False)], 1)


def pooled(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mean (batch, 8) of the tokens of x (batch, length, 8) that the mask (batch, length) keeps."""
    return torch.stack([row[kept].mean(0) for row, kept in zip(x, mask, strict=True)])


def halves(x: Tensor) -> Tensor:
    """Return the product (batch, length / 2, 8) of the halves of x (batch, length, 8), whose length is even."""
    return torch.mul(*x.tensor_split(2, dim=1))


REFERENCES: dict[str, Reference] = {"positions": positions, "pooled": pooled, "halves": halves}
MISCONCEPTIONS = {
    "positions": (
        Misconception(lambda x, table: x + table[: x.shape[0], None], "The rows were taken by batch, not by position."),
        Misconception(lambda x, table: x + table[0], "Each token got the row of position 0."),
    ),
    "pooled": (
        Misconception(lambda x, mask: x.mean(1), "The mask was not used."),
        Misconception(
            lambda x, mask: (x * mask[..., None]).mean(1),
            "The sum of the kept tokens was divided by the length; divide by the number of kept tokens.",
        ),
        Misconception(lambda x, mask: (x * mask[..., None]).sum(1), "The kept tokens were added; take their mean."),
    ),
    "halves": (
        Misconception(lambda x: x[:, ::2] * x[:, 1::2], "Neighbours were multiplied; the halves are asked for."),
    ),
}


def drawn(name: str, draw: Draw, sizes: Sizes, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return inputs of a program; each sequence keeps at least one token."""
    batch, length = sizes
    x = draw.normal(batch, length, WIDTH, dtype=dtype)
    if name == "positions":
        return x, draw.normal(POSITIONS, WIDTH, dtype=dtype)
    if name == "halves":
        return (x,)
    mask = draw.keep(batch, length, probability=0.6).bool()
    mask[:, draw.integer(0, length - 1)] = True
    return x, mask


def at_sizes(
    name: str, sizes: Sequence[Sizes], *, example: Sizes = EXAMPLE, dtype: torch.dtype = torch.float32
) -> Captured:
    """Return the capture of one program from an example, and cases of other sizes."""

    def cases(draw: Draw) -> Iterator[Case]:
        for batch, length in sizes:
            yield Case(drawn(name, draw, (batch, length), dtype), label=f"for batch {batch} and length {length}")

    return Captured(
        REFERENCES[name],
        lambda draw: drawn(name, draw, example, dtype),
        cases,
        member=name,
        how="export",
        misconceptions=MISCONCEPTIONS[name],
    )


def opens(answer: CapturedAnswer, draw: Draw, name: str) -> None:
    """Raise `CheckFailedError` unless the program takes other sizes than the example's."""
    for sizes in ELSEWHERE:
        require_taken(answer, draw, name, sizes)


def ranges(answer: CapturedAnswer, draw: Draw, name: str) -> None:
    """Raise `CheckFailedError` unless the program takes the least and the largest sizes, and refuses larger ones.

    The graph checks its sizes as `ExportedProgram.module()` does, so this shows in runs.
    """
    for sizes in (LEAST[name], LARGEST):
        require_taken(answer, draw, name, sizes)
    step = 2 if name == "halves" else 1
    beyond = ((LARGEST[0] + 1, EXAMPLE[1]), (EXAMPLE[0], LARGEST[1] + step))
    for meaning, largest, sizes in zip(OPEN, LARGEST, beyond, strict=True):
        if not problem(answer, draw, name, sizes):
            raise CheckFailedError(
                f"`{name}` runs for batch {sizes[0]} and length {sizes[1]}; expected: a {meaning} above {largest} is "
                f"refused. State the range: Dim(..., max={largest})."
            )


def require_taken(answer: CapturedAnswer, draw: Draw, name: str, sizes: Sizes) -> None:
    """Raise `CheckFailedError` if the program does not run for these sizes."""
    if why := problem(answer, draw, name, sizes):
        raise CheckFailedError(f"`{name}` should take batch {sizes[0]} and length {sizes[1]}, and {why}")


def problem(answer: CapturedAnswer, draw: Draw, name: str, sizes: Sizes) -> str:
    """Return why the exported graph does not run for these sizes; empty if it does."""
    artifact = answer.capture(drawn(name, draw, EXAMPLE, torch.float32), member=name, how="export")
    try:
        (output, *_) = answer.run(artifact, drawn(name, draw, sizes, torch.float32)).outputs or (None,)
    except AnswerFailedError as error:
        return f"its graph does not run: {error.message[:300]}"
    if output is None or output.dim() != (2 if name == "pooled" else 3) or len(output) != sizes[0]:
        return f"its graph does not return {sizes[0]} results."
    return ""


def each(
    requires: Callable[[CapturedAnswer, Draw, str], None], *names: str, together: bool = False
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check of these programs, which share its points; with `together` one wrong program loses them all."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        share_among(
            names,
            lambda name: requires(answer, draw, name),
            noun="programs",
            where=lambda name: f"`{name}`: ",
            together=together,
        )

    return run


EXERCISE = Exercise(
    title="Export with open sizes",
    kind=Kind.CAPTURED,
    entry_point="exporters",
    points=12,
    wall_s=120,
    hints=(
        "Write each program as a module without Python numbers made of sizes: no int(), no loop over the batch.",
        "dynamic_shapes takes for each input a dict from dimension to Dim, or None. Inputs of equal size share a Dim.",
        "An even length is a Dim times two: 2 * Dim('half', max=64). Slices x[:, :n] with n = x.shape[1] // 2 need it.",
    ),
    checks=(
        *(
            Check(f"`{name}` at three sizes", "equality", 1.5, captures(at_sizes(name, ((4, 6), (7, 12), (3, 10)))))
            for name in REFERENCES
        ),
        Check("batch and length are open", "symbols", 1.5, each(opens, *REFERENCES)),
        Check("the ranges of `positions`", "ranges", 1, each(ranges, "positions")),
    ),
)
