"""Exercise 07.2: rewrite six programs with graph breaks so that each is captured as one graph."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, captures
from autograder.host.kinds.misconceptions import Misconception

WIDTH, LIMIT = 6, 1.5


def report(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return twice the rectified x, and its mean, which the original prints."""
    h = x.relu()
    return h * 2, sum(h.flatten(), h.new_zeros(())) / h.numel()


def rescale(x: Tensor) -> Tensor:
    """Divide by the largest magnitude."""
    return x / max(abs(element) for element in x.flatten())


def branch(x: Tensor) -> Tensor:
    """Return 2x if the sum of x is positive, otherwise x - 1."""
    return x * 2 if x.sum() > 0 else x - 1


def normalise(x: Tensor) -> Tensor:
    """Divide each row by its norm."""
    return x / torch.stack([row.norm() for row in x])[:, None]


def area(x: Tensor) -> Tensor:
    """Return the area under each row by the trapezoid rule, with steps of 1."""
    return torch.trapezoid(x, dim=-1)


def limit(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x limited to a range, and the share of elements outside, which the original logs."""
    outside = sum(abs(element) > LIMIT for element in x.flatten().tolist())
    return x.clamp(-LIMIT, LIMIT), torch.tensor(outside / x.numel(), dtype=x.dtype)


@dataclass(frozen=True)
class Broken:
    """One program with a graph break: its reference, the names of its outputs, and common mistakes."""

    reference: Reference
    names: Sequence[str] = ("the output",)
    misconceptions: Sequence[Misconception] = ()

    @property
    def name(self) -> str:
        """Return the function's name in the answer."""
        return self.reference.__name__


PROGRAMS = {
    program.name: program
    for program in (
        Broken(
            report,
            ("h * 2", "the mean"),
            (
                Misconception(lambda x: (x.relu() * 2, x.mean()), "The mean is that of x; it was printed of h."),
                Misconception(
                    lambda x: (x.relu() * 2, (x.relu() * 2).mean()),
                    "The mean is that of the result; it was printed of h, before the doubling.",
                ),
            ),
        ),
        Broken(
            rescale,
            misconceptions=(
                Misconception(lambda x: x / x.max(), "The largest element was taken; the largest magnitude is meant."),
                Misconception(
                    lambda x: x / x.abs().amax(-1, keepdim=True),
                    "Each row was divided by its own maximum; there is one for the whole tensor.",
                ),
            ),
        ),
        Broken(
            branch,
            misconceptions=(
                Misconception(
                    lambda x: torch.where(x > 0, x * 2, x - 1),
                    "The choice was made for each element; the sum of all of x decides for all.",
                ),
                Misconception(lambda x: x * 2, "Only the first branch was kept; a low sum takes the other one."),
                Misconception(lambda x: x - 1, "Only the second branch was kept; a high sum takes the other one."),
            ),
        ),
        Broken(
            normalise,
            misconceptions=(
                Misconception(lambda x: x / x.norm(), "One norm was taken of all of x; each row has its own."),
                Misconception(
                    lambda x: x / x.norm(dim=0, keepdim=True), "Columns were normalised; dim=1 runs along a row."
                ),
            ),
        ),
        Broken(
            area,
            misconceptions=(
                Misconception(lambda x: x.sum(-1), "All elements were added; the trapezoid rule halves both ends."),
                Misconception(
                    lambda x: x[..., :-1].sum(-1), "Rectangles were added; the trapezoid rule halves both ends."
                ),
            ),
        ),
        Broken(
            limit,
            ("the limited x", "the share outside"),
            (
                Misconception(
                    lambda x: (x.clamp(-LIMIT, LIMIT), (x > LIMIT).to(x.dtype).mean()),
                    "Only elements above the limit were counted; those below -LIMIT are outside, too.",
                ),
                Misconception(
                    lambda x: (x.clamp(-LIMIT, LIMIT), (x.abs() > LIMIT).to(x.dtype).sum()),
                    "The elements outside were counted; the share of them was logged.",
                ),
            ),
        ),
    )
}


def of(name: str, cases: Callable[[Draw], Iterator[Case]], *, dtype: torch.dtype = torch.float32) -> Captured:
    """Return the capture of one program from four rows, with a dynamic number of rows."""
    program = PROGRAMS[name]
    return Captured(
        program.reference,
        lambda draw: (draw.normal(4, WIDTH, dtype=dtype),),
        cases,
        program.names,
        member=name,
        dynamic=[[0]],
        misconceptions=program.misconceptions,
    )


def four_rows(draw: Draw) -> Iterator[Case]:
    """Yield rows with a positive sum, rows with a negative sum, and large rows."""
    x = draw.normal(4, WIDTH)
    yield Case((x - x.mean() + 0.5,), label="for an x with a positive sum")
    yield Case((x - x.mean() - 0.5,), label="for an x with a negative sum")
    yield Case((4 * draw.normal(4, WIDTH),), label="for a large x")


WORDS = {
    "report": "print",
    "rescale": "item",
    "branch": "branch",
    "normalise": "list",
    "area": "numpy",
    "limit": "logging",
}

EXERCISE = Exercise(
    title="Remove graph breaks",
    kind=Kind.CAPTURED,
    entry_point="repaired",
    points=12,
    hints=(
        "Each program leaves the graph once: find the line that needs a Python number, a text, or numpy.",
        "What was printed or logged becomes an output; a choice between values is torch.where; a loop over rows is an "
        "operator with a dim.",
        "The trapezoid rule adds neighbours, x[..., 1:] and x[..., :-1], and halves the sum; "
        "the share is the mean of a comparison turned into x.dtype.",
    ),
    checks=tuple(
        Check(f"`{name}` is one graph, with the right values", word, 1, captures(of(name, four_rows)))
        for name, word in WORDS.items()
    ),
)
