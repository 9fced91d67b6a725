"""Hidden checks and controls of exercise 07.6."""

from collections.abc import Iterator

from autograder.exercises.dynamo.break_dynamo import PROGRAMS, WIDTH, large, repaired
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import captures


def _hard(draw: Draw) -> Iterator[Case]:
    for rows in (2, 4, 127):
        yield Case((draw.normal(rows, WIDTH),), label=f"for {rows} rows")
    yield Case((large(draw, 6),), label="for large numbers")
    yield Case((-50 - draw.normal(3, WIDTH).abs(),), label="for numbers far below zero")


def _large(draw: Draw) -> Iterator[Case]:
    for shift in (-1.0, 1.0):
        yield Case((100 * (draw.normal(4, WIDTH) + shift),), label="for four rows of large numbers")


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other rows, large and small numbers", "hard inputs", 2, captures(*(repaired(n, _hard) for n in PROGRAMS))
        ),
        Check(
            "gradients of the repaired graphs",
            "gradients",
            1.5,
            captures(*(repaired(n, _large) for n in PROGRAMS), gradients=True),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.file("as they were", 0),
        ANSWERS.edited(
            "only repaired",
            6,
            ("lambda: torch.ones(4, 4)", "lambda: 0 * torch.ones(4, 4)"),
            ("lambda: torch.full((1, 4), 200.0)", "lambda: 0 * torch.full((1, 4), 200.0)"),
            ("lambda: -2 *", "lambda: 0 *"),
        ),
        ANSWERS.edited(
            "inputs that anybody would notice",
            6,
            ("torch.ones(4, 4)", "torch.ones(2, 4)"),
            ("200.0", "float('inf')"),
        ),
    ),
    equivalent={
        "x.sum() > 0 -> x.sum() >= 0": "no sum that is drawn is 0",
        "200.0 -> 201.0": "another counterexample",
        "lambda: torch.full((1, 4), 200.0): 1 -> 2": "another counterexample",
        "lambda: -2 * torch.ones(3, 4): 3 -> 4": "another counterexample",
    },
    right_here={
        "zeros": "a sum of zero is not above zero, and so a counterexample",
        "wrong in the first output only": "an input that is 1.01 times as large shows the same",
        "one precision lower": "the inputs are still counterexamples",
        "copy of an input": "chosen gets its own input back",
    },
)
