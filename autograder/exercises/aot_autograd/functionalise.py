"""Exercise 08.1: rewrite programs with views and in-place writes without any in-place write.

All but one are no linear functions: of a linear one, a matrix follows from runs of the program as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer, require_captured, require_no_write
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.point_shares import share_among

WIDTH = 6
OF_TORCH = ("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "copy")
"""Operators that PyTorch's own functionalisation puts in the place of a write through a view."""
DECOMPOSED = ("arange", "iota")
"""Operators that number rows or columns; PyTorch's decompositions of those above make a mask of the numbers."""

MOST_CALLS = 18  # of a graph, and one a row: by hand 7, by decompositions of one's own 18, of two rows of numbers 26
MOST_OF_A_LOOP = 100  # calls of a program that is one; by decompositions of one's own 90


def first_column(x: Tensor) -> Tensor:
    """Square the first column of a copy."""
    y = x.clone()
    y[:, 0] = x[:, 0] ** 2
    return y


def through_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    """Write through a view of the first row, then into the whole tensor; both results show both writes."""
    y = x.clone()
    row = y[0]
    row += 1
    y.tanh_()
    return y, row


def input_changed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Write into the input; the functional program returns the new input first."""
    x = x.clone()
    x.clamp_(min=0)
    return x, x + 1


def accumulated(x: Tensor) -> Tensor:
    """Return running products of the columns."""
    y = x.clone()
    for i in range(1, WIDTH):
        y[:, i] = x[:, i] * y[:, i - 1].clone()  # autograd keeps it for the gradient
    return y


def nested(x: Tensor) -> tuple[Tensor, Tensor]:
    """Write through a view of a view, and return the outer view."""
    y = x.clone()
    block = y[:, 2:5]
    inner = block[:, 1]
    inner.copy_(block.sum(1).tanh())
    return y, block


@dataclass(frozen=True)
class Written:
    """One program that writes."""

    reference: Reference
    names: Sequence[str] = ("y",)
    misconceptions: Sequence[Misconception] = ()
    most_calls: int = MOST_CALLS


PROGRAMS = {
    "first_column": Written(
        first_column,
        misconceptions=(
            Misconception(lambda x: x[:, 0] ** 2, "Only the column was returned; the whole tensor is asked for."),
            Misconception(lambda x: x**2, "Everything was squared; only the first column should be."),
        ),
    ),
    "through_a_view": Written(
        through_a_view,
        ("y", "row"),
        (
            Misconception(
                lambda x: (through_a_view(x)[0], x[0] + 1),
                "row was taken before tanh; it is a view of y, so the later write shows in it.",
            ),
            Misconception(
                lambda x: (x.tanh(), (x[0] + 1).tanh()),
                "The write through row does not show in y; a view writes into the memory of its base.",
            ),
        ),
    ),
    "input_changed": Written(
        input_changed,
        ("the new x", "the result"),
        (
            Misconception(
                lambda x: (x, x.clamp(min=0) + 1), "The old x was returned; the first output is what x would hold."
            ),
        ),
    ),
    "accumulated": Written(
        accumulated,
        misconceptions=(
            Misconception(
                lambda x: torch.cat([x[:, :1], x[:, 1:] * x[:, :-1]], 1),
                "Each column got its neighbour as it was before; it should get the neighbour's new value.",
            ),
        ),
        most_calls=MOST_OF_A_LOOP,
    ),
    "nested": Written(
        nested,
        ("y", "block"),
        (
            Misconception(
                lambda x: (nested(x)[0], x[:, 2:5]),
                "block is a view of y, so the write through inner shows in it as well.",
            ),
        ),
    ),
}


def cases_at(*rows: int) -> Callable[[Draw], Iterator[Case]]:
    """Return a function that yields one case for each number of rows."""

    def cases(draw: Draw) -> Iterator[Case]:
        for count in rows:
            yield Case((draw.normal(count, WIDTH),), label=f"for {count} rows")

    return cases


def functional(*names: str, rows: tuple[int, ...] = (4, 7), gradients: bool = False) -> Callable[..., None]:
    """Return a check that each program's graph has no write and gives the same result; all programs count equally."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        share_among(names, lambda name: _require_functional(answer, name, rows, draw, gradients))

    return run


def _require_functional(answer: CapturedAnswer, name: str, rows: tuple[int, ...], draw: Draw, gradients: bool) -> None:
    program = PROGRAMS[name]
    for count in rows:
        wanted = Captured(
            program.reference,
            lambda d, count=count: (d.normal(count, WIDTH),),  # type: ignore[misc]
            cases_at(count),
            program.names,
            member=name,
            how="dispatch",
            misconceptions=program.misconceptions,
        )
        artifact = require_captured(answer, wanted, draw, gradients=gradients)
        _require_parts_joined(artifact, wanted.told)
        if artifact.calls() > program.most_calls + count:
            raise CheckFailedError(
                f"{wanted.told}for {count} rows the graph has {artifact.calls()} calls; {program.most_calls + count} "
                "are more than enough. Compute whole parts of x, not each number by itself."
            )
        require_no_write(answer, artifact, wanted.example(draw), wanted.told)


def _require_parts_joined(artifact: Artifact, told: str) -> None:
    names = {call.packet.rpartition(".")[2] for call in artifact.called.values()}
    if found := sorted(names.intersection(OF_TORCH + DECOMPOSED)):
        raise CheckFailedError(
            f"{told}the graph calls {found[0]}, by which PyTorch replaces a write through a view. Join the parts "
            "yourself, by torch.cat or torch.stack."
        )


EXERCISE = Exercise(
    title="Functionalise by hand",
    kind=Kind.CAPTURED,
    entry_point="functional",
    points=8,
    hints=(
        "For each write ask: which tensors share this memory, and what does each of them hold afterwards?",
        "Compute the new values first, then join them with the parts that stay: torch.cat for columns and rows, "
        "torch.where for a condition.",
        "A view that is returned is taken last, from the finished tensor: y[0], or y[:, 2:5].",
    ),
    checks=tuple(
        Check(f"`{name}` without a write", name.replace("_", " "), 1, functional(name))
        for name in ("first_column", "through_a_view", "input_changed", "accumulated")
    ),
)
