"""Exercise 14.4: two ONNX models of a module, of which one is wrong; find out which, and inputs that show it.

The models are written by the host in ONNX's text form. A worker that never saw the student's code runs the module and
both models on the inputs of the answer, so no claim of the answer is trusted. No file of a student is read.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.programs import onnx_pairs
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.counterexample import CounterexampleAnswer, Trial, text_of
from autograder.host.kinds.returned_values import Values
from autograder.host.point_shares import share_among

NAMES = ("first", "second")
AGREES, DIFFERS = 1e-4, 1e-2
TEXT = text_of(onnx_pairs)
HEAD = '<ir_version: 10, opset_import: ["" : 20]>\nmodel '
TYPES = {torch.float32: "float", torch.int64: "int64", torch.bool: "bool"}
FORM = 'Return a pair: "first" or "second", and a tuple of tensors, one for each input of the module.'
Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Twins:
    """A module, a right and a wrong model of it, and the inputs that it takes."""

    module: str  # a class of the text
    inputs: Mapping[str, tuple[torch.dtype, tuple[str | int, ...]]]  # dtype and sizes; a name is an open size
    sizes: tuple[str | int, ...]  # of the result
    numbers: Mapping[str, Tensor]  # buffers of the module, constants of both models
    limits: Limits  # of open sizes and inputs
    right: str  # what computes y, in ONNX's text form
    wrong: str
    shows: str  # a sentence about inputs that show the difference
    integers: Mapping[str, Sequence[int]] | None = None  # more constants of both models
    result: str = "float"

    def model(self, body: str) -> str:
        """Return a model with this body, in ONNX's text form."""
        takes = [f"{TYPES[dtype]}[{_listed(sizes)}] {name}" for name, (dtype, sizes) in self.inputs.items()]
        held = {**self.numbers, **{name: torch.tensor(value) for name, value in (self.integers or {}).items()}}
        read = set(re.findall(r"\w+", body))  # the runtime warns about constants that nothing reads
        constants = [
            f"{TYPES[value.dtype]}{[*value.shape] or ''} {name} = {{{_listed(value.flatten().tolist())}}}"
            for name, value in held.items()
            if name in read
        ]
        gives = f"{self.result}[{_listed(self.sizes)}] y"
        return f"{HEAD}({_listed(takes)}) => ({gives}) <{_listed(constants)}> {{ {body} }}"

    def question(self, *, wrong: str, longest: str) -> Mapping[str, Any]:
        """Return the question in which the model called `wrong` is the wrong one; `longest` has more nodes.

        The number of nodes says nothing: both models end with nodes that only pass the result on.
        """
        most = max(self.right.count(" = "), self.wrong.count(" = ")) + 1
        bodies = {name: self.wrong if name == wrong else self.right for name in NAMES}
        models = {name: self.model(_passed_on(bodies[name], most + 8 * (name == longest))) for name in NAMES}
        numbers = {name: value.tolist() for name, value in self.numbers.items()}
        limits = {name: list(ends) for name, ends in self.limits.items()}
        return {"module": self.module, "numbers": numbers, "limits": limits, **models}


def _passed_on(body: str, nodes: int) -> str:
    """Return a body of so many nodes, of which those at the end pass the result on."""
    added = nodes - body.count(" = ")
    copies = [f"{f'y{at}' if at < added else 'y'} = Identity(y{at - 1})" for at in range(1, added + 1)]
    return " ".join([re.sub(r"\by = ", "y0 = ", body), *copies])


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def average(draw: Draw) -> Twins:
    """Return a mean over the length; the wrong model divides by the length of its example."""
    return Twins(
        "Average",
        {"x": (torch.float32, ("batch", "length", 8))},
        ("batch", 8),
        {"scale": draw.normal(8) + 2},
        {"batch": (1, 6), "length": (1, 24), "x": (-100, 100)},
        "m = ReduceMean<keepdims=0>(x, at) y = Mul(m, scale)",
        f"s = ReduceSum<keepdims=0>(x, at) n = Constant<value_float={float(draw.integer(4, 12))}>() "
        "m = Div(s, n) y = Mul(m, scale)",
        "A number in one model is the length of its example. Try other lengths.",
        {"at": [1]},
    )


def centred(draw: Draw) -> Twins:
    """Return differences from the mean row; the wrong model divides by the batch of its example."""
    return Twins(
        "Centred",
        {"x": (torch.float32, ("batch", 4))},
        ("batch", 4),
        {"scale": draw.normal(4) + 2},
        {"batch": (1, 12), "x": (-100, 100)},
        "m = ReduceMean<keepdims=1>(x, at) c = Sub(x, m) y = Mul(c, scale)",
        f"s = ReduceSum<keepdims=1>(x, at) n = Constant<value_float={float(draw.integer(3, 8))}>() "
        "m = Div(s, n) c = Sub(x, m) y = Mul(c, scale)",
        "A number in one model is the batch of its example. Try other batches.",
        {"at": [0]},
    )


def positions(draw: Draw) -> Twins:
    """Return rows of a table that are added by position; the wrong model knows the positions of its example only."""
    last = draw.integer(16, 40)
    begin = "n = Shape<start=1, end=2>(x) stop = Squeeze(n) all = Range(zero, stop, one)"
    again = draw.choice(("at = Min(all, last)", "size = Add(last, one) at = Mod(all, size)"))
    return Twins(
        "Positions",
        {"x": (torch.float32, ("batch", "length", 4))},
        ("batch", "length", 4),
        {"table": draw.normal(64, 4, scale=3.0)},
        {"batch": (1, 4), "length": (1, 64), "x": (-100, 100)},
        f"{_SCALARS} {begin} rows = Gather(table, all) y = Add(x, rows)",
        f"{_SCALARS} last = Constant<value_int={last}>() {begin} {again} rows = Gather(table, at) y = Add(x, rows)",
        "One model knows the positions of its example only. Try longer inputs.",
    )


_SCALARS = "zero = Constant<value_int=0>() one = Constant<value_int=1>()"


def statistics(draw: Draw) -> Twins:
    """Return a normalisation by stored statistics; the wrong model computes them from its batch, as in training."""
    return Twins(
        "Normalised",
        {"x": (torch.float32, ("batch", 6))},
        ("batch", 6),
        {"mean": draw.normal(6), "deviation": draw.normal(6).abs() + 0.5},
        {"batch": (1, 8), "x": (-100, 100)},
        "c = Sub(x, mean) y = Div(c, deviation)",
        "m = ReduceMean<keepdims=1>(x, at) c = Sub(x, m) v = Mul(c, c) w = ReduceMean<keepdims=1>(v, at) "
        "e = Constant<value_float=1.0e-5>() s = Add(w, e) d = Sqrt(s) y = Div(c, d)",
        "One model was exported in training mode. Nearly all inputs show it.",
        {"at": [0]},
    )


def branch(draw: Draw) -> Twins:
    """Return a branch on the largest number; the wrong model has only the side that its example took."""
    return Twins(
        "Limited",
        {"x": (torch.float32, ("batch", 6))},
        ("batch", 6),
        {"limit": torch.tensor(float(draw.integer(12, 50))), "weight": draw.normal(6) + 3},
        {"batch": (1, 8), "x": (-100, 100)},
        "a = Abs(x) m = ReduceMax<keepdims=0>(a) f = Div(limit, m) one = Constant<value_float=1.0>() "
        "g = Min(f, one) s = Mul(x, g) y = Mul(s, weight)",
        "y = Mul(x, weight)",
        "One model has only the side of the branch that small numbers take. Try larger ones.",
    )


Maker = Callable[[Draw], Twins]


def tells(*makers: Maker, text: str = TEXT, rounds: int = 1) -> Callable[[CounterexampleAnswer, Draw], None]:
    """Return a check that the answer tells which model is wrong, and shows it; one wrong answer loses all points.

    Each maker is asked `rounds` times; both names occur among the wrong models.
    """

    def run(answer: CounterexampleAnswer, draw: Draw) -> None:
        count = len(makers) * rounds
        wrong = draw.sample([NAMES[i % 2] for i in range(count)], count)
        pairs = list(zip([make(draw) for make in makers for _ in range(rounds)], wrong, strict=True))
        asked = [(twins, name, twins.question(wrong=name, longest=draw.choice(NAMES))) for twins, name in pairs]
        share_among(asked, lambda pair: require_told(answer, *pair, text), noun="pairs", together=True)

    return run


def require_told(
    answer: CounterexampleAnswer, twins: Twins, wrong: str, question: Mapping[str, Any], text: str
) -> None:
    """Raise `CheckFailedError` unless the answer names the wrong model, with inputs on which only that one differs."""
    about = f"For `{twins.module}`: "
    trial = Trial(twins.module, text, dict(question), "given", accepts=lambda found: _complaint(found, twins, about))
    found = answer.ask(trial)
    results = answer.run_on_question(trial, "run", found).value
    require_shown(results, found.value[0], wrong, twins.shows, about)


def require_shown(results: Mapping[str, Any], named: str, wrong: str, shows: str, about: str) -> None:
    """Raise `CheckFailedError` unless only the wrong model differs from the module on these results, and was named."""
    right, expected = NAMES[1 - NAMES.index(wrong)], results["module"]
    for each in NAMES:
        if not isinstance(results[each], Tensor) or results[each].shape != expected.shape:
            why = results[each] if isinstance(results[each], str) else f"it gives {tuple(results[each].shape)}"
            raise CheckFailedError(
                f'{about}"{each}" does not fit these inputs: {why}. Choose inputs that both models take.'
            )
    if not close(results[right], expected, AGREES):
        raise CheckFailedError(
            f"{about}On these inputs even the right model is further than {AGREES} from the module; they do not show "
            "which one is wrong."
        )
    if close(results[wrong], expected, DIFFERS):
        raise CheckFailedError(f"{about}Neither model differs by more than {DIFFERS} on these inputs. {shows}")
    if named != wrong:
        raise CheckFailedError(
            f'{about}The inputs show it, but "{named}" agrees with the module: name the wrong model.'
        )


def close(found: Tensor, expected: Tensor, tolerance: float) -> bool:
    """Tell whether all numbers are within this tolerance, absolute or relative."""
    return torch.allclose(found.double(), expected.double(), rtol=tolerance, atol=tolerance)


def _complaint(found: Values, twins: Twins, about: str) -> str:
    """Return why an answer is none of the form that was asked for; empty if it is."""
    value, limits = found.value, twins.limits
    several = isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[1], tuple | list)
    if not several or type(value[0]) is not str or value[0] not in NAMES:
        return about + FORM
    tensors, sizes = value[1], dict[str | int, int]()
    if len(tensors) != len(twins.inputs) or not all(isinstance(each, Tensor) for each in tensors):
        return about + FORM
    for tensor, (name, (dtype, dims)) in zip(tensors, twins.inputs.items(), strict=True):
        known: dict[str | int, int] = {dim: dim for dim in dims if isinstance(dim, int)}
        fixed = [known.get(dim, size) for size, dim in zip(tensor.shape, dims, strict=False)]
        if tensor.dtype is not dtype or tensor.dim() != len(dims) or fixed != [*tensor.shape]:
            expected = f"{dtype} of shape ({_listed(dims)})"
            return f"{about}{name} is {tensor.dtype} of shape {tuple(tensor.shape)}; expected {expected}."
        for size, dim in zip(tensor.shape, dims, strict=True):
            low, high = limits[dim] if isinstance(dim, str) else (size, size)
            if not low <= size <= high:
                return f"{about}{dim} is {size} in {name}; its limits are {low} and {high}."
            if sizes.setdefault(dim, size) != size:
                return f"{about}{dim} is {sizes[dim]} and, in {name}, {size}. A size has one value in a call."
        low, high = limits[name]
        least, most = float(tensor.min()), float(tensor.max())
        if least < low or most > high:
            return f"{about}{name} has numbers from {least:g} to {most:g}; its limits are {low} and {high}."
    return ""


EXERCISE = Exercise(
    title="Two exports, one wrong",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="tell_apart",
    points=10,
    wall_s=120,
    hints=(
        "Draw inputs until one model is close to the module and the other is not. The session says names, shapes and "
        "types; `limits` has the ends of each size and of each input's numbers.",
        "Draw each size once for all inputs. Draw float numbers of several magnitudes, and in some draws round them to "
        "halves; whole numbers from the whole range; masks with different shares of True.",
        "With near, far = 1e-4, 1e-2: the model is wrong if torch.allclose(found, expected, rtol=far, atol=far) is "
        "False, and the other must be close with near.",
    ),
    checks=(
        Check("a size of the example", "sizes", 1.5, tells(average, centred, rounds=2)),
        Check("positions of the example", "positions", 1.5, tells(positions, rounds=4)),
        Check("training mode", "statistics", 1, tells(statistics, rounds=4)),
        Check("a branch of the example", "branches", 1, tells(branch, rounds=4)),
    ),
)
