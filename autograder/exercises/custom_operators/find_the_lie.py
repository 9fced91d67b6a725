"""Exercise 11.1: five operators that promise something else than they do, and the input that shows one of the lies.

The host runs what all five promise and what they do, on the input that the answer names. An input that shows two lies
does not count: a compiler that knew the right promise of one operator would still be wrong on it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, disproves
from autograder.host.kinds.returned_values import Values

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
_BEGIN = """
import torch
from torch.nn import functional as F

def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

def made(question):
    torch.manual_seed(0)
    x = torch.randn(question["shape"]) * question["magnitude"]
    return x.t() if question["transposed"] else x
"""
_END = """
def same(first, second):
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return torch.equal(first, second) if isinstance(first, torch.Tensor) else first == second

def judged(question, promises):
    times = question["times"]
    does = {{name: body(made(question), times) for name, body in DOES.items()}}
    said = {{name: body(made(question), times) for name, body in promises.items()}}
    return {{name: "kept" if same(does[name], said[name]) else "broken" for name in DOES}}

def reference(question):
    return {{name: "kept" for name in SAYS}}

def right(question):
    return judged(question, {{**SAYS, "{asked}": right_{asked}}})

def wrong(question):
    return judged(question, SAYS)
"""
FORM = (
    "Return a dict with `shape` (two sizes from 1 to 64), `transposed` (True or False), `magnitude` (a number from "
    "0.001 to 1000) and `times` (1 to 8)."
)


def trial(asked: str, numbers: Mapping[str, int]) -> Trial:
    """Return the question about one operator; `numbers` has the number of each."""
    return Trial(
        f"the operator `{asked}` with {numbers[asked]}",
        _text(asked, numbers),
        {"operator": asked, "numbers": dict(numbers)},
        accepts=_accepted,
        explain=lambda inputs: LIES[asked].equal.format(n=numbers[asked]),
        wrong=f"the promise of `{asked}`",
        spoils=lambda result: _also_broken(asked, result.value),
        silent=False,
    )


def _also_broken(asked: str, promises: Mapping[str, str]) -> str:
    others = [f"`{name}`" for name, state in promises.items() if state == "broken"]
    return (
        f"On this input {' and '.join(others)} {'breaks its promise' if len(others) == 1 else 'break their promises'}, "
        f"too. Only `{asked}` may break its own: begin with an input on which all five are kept, and change one thing."
    )


def _text(asked: str, numbers: Mapping[str, int]) -> str:
    functions = [
        f"def {part}_{name}(x, times):\n    {getattr(lie, part).format(n=numbers[name])}\n"
        for name, lie in LIES.items()
        for part in ("does", "says", "right")
    ]
    does, says = (", ".join(f'"{name}": {part}_{name}' for name in LIES) for part in ("does", "says"))
    tables = f"DOES = {{{does}}}\nSAYS = {{{says}}}"
    return "\n".join([_BEGIN, *functions, tables, _END.format(asked=asked)])


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
    """Return a function that gives `rounds` trials of an operator; each of the five has a random number in each."""
    return lambda draw: [trial(name, {lie: draw.integer(low, high) for lie in LIES}) for _ in range(rounds)]


EXERCISE = Exercise(
    title="Find the lie",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="input_that_shows",
    points=10,
    checks=tuple(Check(f"only `{name}` is shown", name, 1, disproves(shown(name, 6, 20))) for name in LIES),
    hints=(
        "Compare the two columns of the table: for which inputs do the kernel and its promise say the same? Begin with "
        "an input on which all five keep their promise.",
        "Two operators need a certain number of rows or columns, one needs certain strides, one certain numbers, and "
        "one an argument that is not its default. Change one of these, and leave the other four.",
        'All five keep it for numbers["alias"] + 1 rows, numbers["shape"] columns, magnitude 0.001 and times 1. '
        'One row less shows "alias", one column more "shape". Transposed, `shape` names columns first.',
    ),
)
