"""Exercise 03.3: find a pair of inputs for which a trace is wrong without any error.

Whoever knows that a trace freezes what its example decided may search for the pair, or take extremes: a very small and
a very large number are on two sides of every limit. Both are right answers; rows need the limit of the question.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, disproves
from autograder.host.kinds.returned_values import Values

PRIMES = (257, 263, 269, 271, 277, 281, 283, 293, 307, 311, 313, 317, 331)
"""Limits of rows; two of them multiplied are more rows than an answer may have, so no number of rows serves for two."""


@dataclass(frozen=True)
class Trap:
    """A program whose trace is wrong for some inputs; it contains one number, the limit."""

    source: str  # of the function `program`, with {limit} in it
    decision: Callable[[torch.Tensor, int], Any]  # the frozen value; the trace is right for both inputs if it is equal
    question: str  # completes "both inputs ..."


TRAPS: Mapping[str, Trap] = {
    "normalise": Trap(
        """
def program(x):
    if x.abs().max() > {limit}:
        x = x / x.abs().max()
    return x
""",
        lambda x, limit: bool(x.abs().max() > limit),
        "are on the same side of the limit",
    ),
    "average_even": Trap(
        """
def program(x):
    if x.shape[0] % {limit} == 0:
        return x.sum(0) / x.shape[0]
    return x.sum(0)
""",
        lambda x, limit: x.shape[0] % limit == 0,
        "have a number of rows that the limit divides, or both have not",
    ),
    "halve": Trap(
        """
def program(x):
    times = 0
    while x.abs().sum() > {limit} and times < 20:
        x = x / 2
        times += 1
    return x
""",
        lambda x, limit: next((n for n in range(20) if x.abs().sum() / 2**n <= limit), 20),
        "are halved equally often",
    ),
}
_TEXT = """
import warnings
import torch

{source}

def reference(example, later):
    return program(later)


def right(example, later):
    return torch.jit.script(program)(later)


def wrong(example, later):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(program, (example,), check_trace=False)(later)
"""


def trial(name: str, limit: int, accepts: Callable[[Values], str] | None = None) -> Trial:
    """Return the question about the program `name` with this limit: the trace of the example must be wrong."""
    trap = TRAPS[name]
    return Trial(
        f"`{name}` with limit {limit}",
        _TEXT.format(source=trap.source.format(limit=limit)),
        {"program": name, "limit": limit},
        accepts=lambda inputs: _form(inputs) or (accepts(inputs) if accepts else ""),
        explain=lambda inputs: _explained(inputs, trap, limit),
        wrong="the trace",
        right="the scripted program",
    )


def _form(inputs: Values) -> str:
    pair = inputs.value
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return "Return a pair: the example to trace with, and the input for later."
    if not all(isinstance(t, torch.Tensor) and t.dtype is torch.float32 and t.dim() == 2 and t.numel() for t in pair):
        return "Both inputs should be float32 matrices with at least one element."
    return ""


def _explained(inputs: Values, trap: Trap, limit: int) -> str:
    """Return the likely mistake if a pair of inputs does not show a difference."""
    example, later = inputs.value
    if example.shape == later.shape and torch.equal(example, later):
        return "Both inputs are the same: a trace is right for the input that it was made with."
    if trap.decision(example, limit) == trap.decision(later, limit):
        return f"The trace keeps what its example decided, and here both inputs {trap.question}: the same way is right."
    return "The two ways give the same numbers here; choose numbers for which they do not."


def limits(names: Sequence[str], low: int, high: int, rounds: int = 1) -> Callable[[Draw], list[Trial]]:
    """Return a function that gives trials of each program `rounds` times, each with a random limit."""
    return lambda draw: [trial(name, limit_of(name, draw, low, high)) for name in names for _ in range(rounds)]


def limit_of(name: str, draw: Draw, low: int, high: int) -> int:
    """Draw a limit; for rows it is a prime, since no one number of rows is a multiple of all of them."""
    return draw.choice(PRIMES) if name == "average_even" else draw.integer(low, high)


def _visible(name: str) -> Check:
    return Check(f"`{name}` is exposed", name, 1.5, disproves(limits([name], 2, 4)))


EXERCISE = Exercise(
    title="Expose a trace",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="expose",
    points=8,
    checks=tuple(map(_visible, TRAPS)),
    hints=(
        "Which question does each program ask about its input? A trace asks it once, of the example.",
        "Take an example for which the answer is yes and a later input for which it is no. Keep dtype and rank.",
        "For `normalise`: torch.full((2, 3), limit - 1.0) and torch.full((2, 3), limit + 1.0). For `average_even` "
        "change the number of rows, for `halve` the size of the numbers.",
    ),
)
