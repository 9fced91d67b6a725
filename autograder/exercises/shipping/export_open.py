"""Exercise 14.1: export programs whose batch and length stay open, within ranges."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.host.artifacts import Artifact
from autograder.host.channel import MalformedAnswerError
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
ELSEWHERE = ((2, 4), (5, 14))
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


def sizes_of(answer: CapturedAnswer, draw: Draw, name: str) -> list[Any]:
    """Return batch and length of each input that has them, as the exported program declares them."""
    example = drawn(name, draw, EXAMPLE, torch.float32)
    found = answer.sizes(example, member=name)
    if not isinstance(found, list) or len(found) != len(example):
        raise MalformedAnswerError
    batched = found[:1] if name == "positions" else found
    if not all(isinstance(dims, list) and len(dims) >= 2 for dims in batched):
        raise MalformedAnswerError
    return [dims[:2] for dims in batched]


def opens(answer: CapturedAnswer, draw: Draw, name: str) -> None:
    """Raise `CheckFailedError` if a size that should be open is fixed."""
    for number, dims in enumerate(sizes_of(answer, draw, name)):
        for dim, (size, meaning) in enumerate(zip(dims, OPEN, strict=True)):
            if isinstance(size, int):
                raise CheckFailedError(
                    f"`{name}`: dimension {dim} of input {number}, the {meaning}, is fixed at {size}. A named Dim in "
                    "dynamic_shapes raises where the program fixes it, and the message says so."
                )
    artifact = answer.capture(drawn(name, draw, EXAMPLE, torch.float32), member=name, how="export")
    for batch, length in ELSEWHERE:
        _require_run(answer, artifact, name, drawn(name, draw, (batch, length), torch.float32))


def _require_run(answer: CapturedAnswer, artifact: Artifact, name: str, inputs: Sequence[Tensor]) -> None:
    """Raise `CheckFailedError` unless the graph runs for inputs of this size, and its result has their batch."""
    batch, length = inputs[0].shape[:2]
    told = f"`{name}` declares open sizes, and for batch {batch} and length {length}"
    try:
        (output, *_) = answer.run(artifact, inputs).outputs or (None,)
    except AnswerFailedError as error:
        raise CheckFailedError(f"{told} its graph does not run: {error.message[:300]}") from None
    if output is None or output.dim() != (2 if name == "pooled" else 3) or len(output) != batch:
        raise CheckFailedError(f"{told} its graph does not return {batch} results.")


def ranges(answer: CapturedAnswer, draw: Draw, name: str) -> None:
    """Raise `CheckFailedError` unless batch and length have the ranges that the task names."""
    opens(answer, draw, name)
    for dims in sizes_of(answer, draw, name):
        for size, meaning, least, largest in zip(dims, OPEN, LEAST[name], LARGEST, strict=True):
            if not isinstance(size, list) or len(size) != 3:
                raise MalformedAnswerError
            lower, upper = (each if isinstance(each, int) else None for each in size[1:])
            if lower is None or lower > least or upper != largest:
                told = f"from {lower} to {'any size' if upper is None else upper}"
                raise CheckFailedError(
                    f"`{name}`: the {meaning} may be {told}; expected from {least} (or less) to {largest}. "
                    f'State it: Dim("{meaning}", min=..., max={largest}).'
                )


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
            Check(f"`{name}` at three sizes", "equality", 1.5, captures(at_sizes(name, ((2, 4), (7, 12), (3, 10)))))
            for name in REFERENCES
        ),
        Check("batch and length are open", "symbols", 1.5, each(opens, *REFERENCES)),
        Check("the ranges of `positions`", "ranges", 1.0, each(ranges, "positions")),
    ),
)
