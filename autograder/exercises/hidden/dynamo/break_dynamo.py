"""Hidden checks and controls of exercise 07.6."""

from __future__ import annotations

from collections.abc import Iterator

from autograder.exercises.dynamo import break_dynamo as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import captures

repaired, PROGRAMS, WIDTH = visible.repaired, visible.PROGRAMS, visible.WIDTH


def _hard(draw: Draw) -> Iterator[Case]:
    for rows in (2, 4, 127):
        yield Case((draw.normal(rows, WIDTH),), label=f"for {rows} rows")
    yield Case((visible.large(draw, 6),), label="for large numbers")
    yield Case((-50 - draw.normal(3, WIDTH).abs(),), label="for numbers far below zero")


def _large(draw: Draw) -> Iterator[Case]:
    for shift in (-1.0, 1.0):
        yield Case((100 * (draw.normal(4, WIDTH) + shift),), label="for four rows of large numbers")


REFERENCE = '''
def broken():
    """For each program an input that shows the mistake, and a version that is captured rightly."""

    def unrolled_input():
        return torch.ones(4, 4)

    def unrolled(x):
        return x.tanh().sum(0)

    def softened_input():
        return torch.full((1, 4), 200.0)

    def softened(x):
        return F.softplus(x)

    def chosen_input():
        return -2 * torch.ones(3, 4)

    def chosen(x):
        return torch.where(x.sum() > 0, x * 2, x - 1)

    return {
        "unrolled_input": unrolled_input,
        "unrolled": unrolled,
        "softened_input": softened_input,
        "softened": softened,
        "chosen_input": chosen_input,
        "chosen": chosen,
    }
'''
AS_THEY_WERE = '''
@torch.compiler.assume_constant_result
def is_positive(x):
    return bool(x.sum() > 0)


def broken():
    """Inputs that show nothing, and the programs as they were."""

    def unrolled_input():
        return torch.ones(3, 4)

    def unrolled(x):
        total = torch.zeros_like(x[0])
        for row in x:
            total = total + row.tanh()
        return total

    def softened_input():
        return torch.ones(3, 4)

    def softened(x):
        if torch.compiler.is_compiling():
            return (1 + x.exp()).log()
        return F.softplus(x)

    def chosen_input():
        return torch.ones(3, 4)

    def chosen(x):
        return x * 2 if is_positive(x) else x - 1

    return {
        "unrolled_input": unrolled_input,
        "unrolled": unrolled,
        "softened_input": softened_input,
        "softened": softened,
        "chosen_input": chosen_input,
        "chosen": chosen,
    }
'''

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other rows, large and small numbers", "hard inputs", 2, captures(*(repaired(n, _hard) for n in PROGRAMS))
        ),
        Check(
            "gradients of the repaired graphs",
            "gradients",
            1.2,
            captures(*(repaired(n, _large) for n in PROGRAMS), gradients=True),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("as they were", AS_THEY_WERE, 0),
        Control("only repaired", REFERENCE.replace("_input():\n        return", "_input():\n        return 0 *"), 6.6),
        Control(
            "inputs that anybody would notice",
            REFERENCE.replace("torch.ones(4, 4)", "torch.ones(2, 4)").replace("200.0", "float('inf')"),
            6.6,
        ),
    ),
    right_here={
        "zeros": "a sum of zero is not above zero, and so a counterexample",
        "wrong in the first output only": "an input that is 1.01 times as large shows the same",
        "one precision lower": "the inputs are still counterexamples",
        "copy of an input": "chosen gets its own input back",
    },
)
