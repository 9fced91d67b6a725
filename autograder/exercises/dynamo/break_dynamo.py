"""Exercise 07.6: find inputs for which a capture is silently wrong, and repair the cause."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import Captured, CapturedAnswer, captures
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Program, TensorSpec
from course_lib.graph import to_data

WIDTH = 4
MAX_ELEMENTS, MAX_NUMBER = 4096, 1e4


@dataclass(frozen=True)
class Limited:
    """A program that is right in eager mode, and its capture, which is wrong because of a stated limitation.

    `right` branches and loops as eager mode may, so that it cannot be captured and is no repair.
    """

    name: str
    right: Callable[[Tensor], Tensor]
    wrong: Callable[[Tensor], Tensor]  # what the captured graph computes
    limitation: str  # a sentence for students who find no input
    misconceptions: tuple[Misconception, ...]

    @property
    def graph_of_wrong(self) -> Artifact:
        """Return the captured graph, as data."""
        traced = Program(self.name, lambda: self.wrong, (TensorSpec((3, WIDTH)),), 0).trace()
        graph, tensors = to_data(traced)
        return Artifact(graph, tensors)


def _chosen(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def _unrolled(x: Tensor) -> Tensor:
    return sum((row.tanh() for row in x), x.new_zeros(WIDTH))


def _softened(x: Tensor) -> Tensor:
    parts = [e + (-e).exp().log1p() if e > 0 else e.exp().log1p() for e in x.flatten()]
    return torch.stack(parts).reshape(x.shape) if parts else x.clone()


PROGRAMS = {
    program.name: program
    for program in (
        Limited(
            "unrolled",
            _unrolled,
            lambda x: x[0].tanh() + x[1].tanh() + x[2].tanh(),
            "The loop ran over three rows when the graph was recorded, so the graph adds three rows.",
            (
                Misconception(
                    lambda x: x.sum(0).tanh(), "The rows were added before tanh; tanh is taken of each row first."
                ),
                Misconception(lambda x: x.tanh().sum(1), "Each row was summed; the rows are added to each other."),
            ),
        ),
        Limited(
            "softened",
            _softened,
            lambda x: (1 + x.exp()).log(),
            "Under capture the short formula is taken, and exp overflows where softplus does not.",
            (
                Misconception(
                    lambda x: (1 + x.exp()).log(),
                    "The short formula was kept: exp overflows for large inputs. Keep the one that eager mode runs.",
                ),
                Misconception(lambda x: x.relu(), "relu is what softplus comes near to far from zero, not at zero."),
            ),
        ),
        Limited(
            "chosen",
            _chosen,
            lambda x: x * 2,
            "The helper is declared constant, so the branch of the first call stays for ever.",
            (
                Misconception(lambda x: x * 2, "The branch is still that of the first call; both are needed."),
                Misconception(
                    lambda x: torch.where(x > 0, x * 2, x - 1),
                    "The choice was made for each element; the sum of all of x decides for all.",
                ),
            ),
        ),
    )
}


def proves(name: str) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that the captured graph is silently wrong for the answer's input."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        program = PROGRAMS[name]
        x = given_input(answer, name)
        try:
            (wrong,) = answer.run(program.graph_of_wrong, (x,)).outputs
        except AnswerFailedError:
            raise CheckFailedError(
                f"`{name}_input`: the captured graph raises on it, so that anybody would notice; find one on which it "
                "runs and is wrong."
            ) from None
        eager, truth = program.right(x), program.right(x.double())
        if wrong.shape != eager.shape or wrong.dtype != eager.dtype:
            raise CheckFailedError(f"`{name}_input`: the captured graph gives another shape on it; find a silent case.")
        try:
            comparison.require_close(wrong, truth, eager, "the output")
        except CheckFailedError:
            return
        raise CheckFailedError(f"`{name}_input`: the captured graph is right on this input. {program.limitation}")

    return run


def given_input(answer: CapturedAnswer, name: str) -> Tensor:
    """Return the answer's input for a program, after checking it."""
    outputs = answer.call(Case(()), member=f"{name}_input").outputs
    if len(outputs) != 1:
        raise CheckFailedError(f"`{name}_input` returned {len(outputs)} tensors; return one.")
    (x,) = outputs
    if x.dtype is not torch.float32 or x.dim() != 2 or x.shape[1] != WIDTH or x.numel() > MAX_ELEMENTS:
        raise CheckFailedError(
            f"`{name}_input` returned {x.dtype} of shape {tuple(x.shape)}; expected float32 of shape (rows, {WIDTH}), "
            f"with at most {MAX_ELEMENTS:,} elements."
        )
    if not bool(torch.isfinite(x).all()) or float(x.abs().max() if x.numel() else 0) > MAX_NUMBER:
        raise CheckFailedError(f"`{name}_input` holds NaN, infinity or numbers above {MAX_NUMBER:g}.")
    return x


def repaired(name: str, cases: Callable[[Draw], Iterator[Case]]) -> Captured:
    """Return the capture of a repaired program from three rows with a positive sum, with a dynamic number of rows."""
    program = PROGRAMS[name]
    return Captured(
        program.right,
        lambda draw: (draw.normal(3, WIDTH).abs(),),
        cases,
        member=name,
        dynamic=[[0]],
        misconceptions=program.misconceptions,
    )


def large(draw: Draw, rows: int) -> Tensor:
    """Return rows of numbers above 100, for which exp overflows, and rows below -100, alternating."""
    signs = 1 - 2 * (torch.arange(rows) % 2)
    return (100 + 100 * draw.normal(rows, WIDTH).abs()) * signs[:, None]


def plain(draw: Draw) -> Iterator[Case]:
    """Yield three rows as in the example, five rows, and rows with a negative sum."""
    yield Case((draw.normal(3, WIDTH).abs(),), label="for three positive rows")
    yield Case((draw.normal(5, WIDTH),), label="for five rows")
    yield Case((-draw.normal(3, WIDTH).abs(),), label="for three negative rows")
    yield Case((large(draw, 3),), label="for large numbers")


EXERCISE = Exercise(
    title="Break a capture, and repair it",
    kind=Kind.CAPTURED,
    entry_point="broken",
    points=8,
    hints=(
        "Ask for each program what was decided while the graph was recorded: a length, a branch, a formula.",
        "An input that decides otherwise shows it: another number of rows, numbers for which exp overflows, a sum "
        "below zero, where x - 1 is not x * 2.",
        "A repaired program decides nothing while it is recorded: sum over a dim, the formula of eager mode, "
        "torch.where.",
    ),
    checks=(
        *(Check(f"the capture of `{n}` is wrong on your input", "counterexample", 1, proves(n)) for n in PROGRAMS),
        *(
            Check(f"`{n}` repaired: one graph that is right", "repair", 0.5, captures(repaired(n, plain)))
            for n in PROGRAMS
        ),
    ),
)
