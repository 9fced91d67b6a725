"""Exercise 11.1: five operators that promise something else than they do, and the input that shows it.

Of each operator the host runs what it promises and what it does, on the inputs that the answer names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, Values, disproves

MAX_SIZE = 64


@dataclass(frozen=True)
class Lie:
    """An operator whose rules are wrong; its source has one number, {n}."""

    does: str  # the body of the kernel
    says: str  # the body of what it promises; returns what a caller may expect
    right: str  # the body of the right promise
    equal: str  # why an input may not show it


LIES: Mapping[str, Lie] = {
    "shape": Lie(
        "return list(x[:, ::{n}].clone().shape)",
        "return [x.shape[0], x.shape[1] // {n}]",
        "return [x.shape[0], -(-x.shape[1] // {n})]",
        "Every {n}-th column: if {n} divides the number of columns, both formulas count the same.",
    ),
    "strides": Lie(
        "return list((x * {n}).stride())",
        "return list(torch.empty(x.shape).stride())",
        "return list(torch.empty_like(x).stride())",
        "For an input that is contiguous, new memory in the usual order has the same strides.",
    ),
    "write": Lie(
        "total = x.sum()\n    if x.abs().max() > {n}:\n        x.clamp_(-{n}, {n})\n    return [total, x]",
        "return [x.sum(), x]",
        "return [x.sum(), x.clamp(-{n}, {n})]",
        "The operator writes only if a number is larger than {n}.",
    ),
    "alias": Lie(
        "rest = -x.shape[0] % {n}\n    padded = F.pad(x, (0, 0, 0, rest)) if rest else x\n    return shares(padded, x)",
        "return False",
        "return x.shape[0] % {n} == 0",
        "The operator allocates whenever it has to pad to a multiple of {n} rows.",
    ),
    "argument": Lie(
        "return list(x.repeat(1, times).shape)",
        "return list(x.shape)",
        "return [x.shape[0], x.shape[1] * times]",
        "With times=1 the argument that is missing makes no difference.",
    ),
}
_TEXT = """
import torch
from torch.nn import functional as F

def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

def made(question):
    torch.manual_seed(0)
    x = torch.randn(question["shape"]) * question["magnitude"]
    return x.t() if question["transposed"] else x

def reference(question):
    x, times = made(question), question["times"]
    {does}

def right(question):
    x, times = made(question), question["times"]
    {right}

def wrong(question):
    x, times = made(question), question["times"]
    {says}
"""
FORM = (
    "Return a dict with `shape` (two sizes from 1 to 64), `transposed` (True or False), `magnitude` (a number from "
    "0.001 to 1000) and `times` (1 to 8)."
)


def trial(name: str, number: int) -> Trial:
    """Return the question about one operator with its number."""
    lie = LIES[name]
    bodies = {part: getattr(lie, part).format(n=number) for part in ("does", "says", "right")}
    return Trial(
        f"the operator `{name}` with {number}",
        _TEXT.format(**bodies),
        {"operator": name, "number": number},
        accepts=_accepted,
        explain=lambda inputs: lie.equal.format(n=number),
        wrong="what the operator promises",
        right="the right promise",
        silent=False,
    )


def _accepted(inputs: Values) -> str:
    found = inputs.value
    if type(found) is not dict or set(found) != {"shape", "transposed", "magnitude", "times"}:
        return FORM
    shape, times = found["shape"], found["times"]
    sizes = [*shape, times] if isinstance(shape, list | tuple) and len(shape) == 2 else []
    whole = bool(sizes) and all(type(size) is int and 1 <= size <= MAX_SIZE for size in sizes) and times <= 8
    magnitude = found["magnitude"]
    fits = type(magnitude) in (int, float) and 0.001 <= magnitude <= 1000
    return "" if whole and fits and type(found["transposed"]) is bool else FORM


def shown(name: str, low: int, high: int, rounds: int = 1) -> Callable[[Draw], Sequence[Trial]]:
    """Return a function that gives `rounds` trials of an operator, each with a random number."""
    return lambda draw: [trial(name, draw.integer(low, high)) for _ in range(rounds)]


EXERCISE = Exercise(
    title="Find the lie",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="input_that_shows",
    points=10,
    checks=tuple(Check(f"`{name}` is shown", name, 1.2, disproves(shown(name, 2, 5))) for name in LIES),
    hints=(
        "Compare the two columns of the table: for which inputs do the kernel and its promise say the same?",
        "Two operators need a certain number of rows or columns, one needs certain strides, one certain numbers, and "
        "one an argument that is not its default.",
        'For "shape", a number of columns that the number does not divide; for "alias", a number of rows that it does; '
        'for "strides", a transposed matrix of more than one row and column.',
    ),
)
