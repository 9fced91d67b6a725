"""Answers that are counterexamples: inputs on which a wrong program gives a wrong result, and a right one does not.

The student's function returns inputs: tensors, plain data, programs that torch.fx can trace. They are sent as data.
Then three programs of the host run on them in a worker that never saw the student's code. The `reference` gives the
true result, the `right` program must agree with it, and the `wrong` program must not. None of them may fail. So no
claim of the answer is trusted, and an input on which all programs fail proves nothing.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import fx

from autograder.host import shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import read_graph
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Json, RawTensor, Result
from autograder.protocol.requests.answers import FindInputs, PackedGraph, PackedValue, WrittenGraph
from autograder.protocol.requests.loads import LoadTrial, RunTrial
from course_lib.graph import from_data
from course_lib.verify.error_rule import deviation

MAX_VALUES = 2000
MAX_DEPTH = 20
MAX_TEXT = 1000
MAX_NODES = 100
MAX_GRAPHS = 8


@dataclass(frozen=True)
class Values:
    """The values that a function returned in a worker, in two forms: as in the message, and as Python objects."""

    packed: PackedValue  # for sending it to another worker
    tensors: tuple[torch.Tensor, ...]
    value: Any  # programs in it are graph modules, which must not be called in the host

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return the items if the value is a tuple, else a tuple of the value."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def graphs(self) -> list[fx.GraphModule]:
        """Return the programs among the values."""
        return [leaf for leaf in leaves(self).values() if isinstance(leaf, fx.GraphModule)]


@dataclass(frozen=True)
class Trial:
    """A wrong program, its right version, and the words for them in messages.

    `text` is Python source that defines the functions `reference`, `right` and `wrong`. Each is called with the items
    of the tuple that the student's function returned, or with one other value. Programs among them arrive as graph
    modules. Each function gets its own copy of the inputs, and the same random numbers. The result may be a tensor,
    plain data, or a tuple, list or dict of them. A program that writes into its inputs should also return them.
    """

    name: str  # completes "For ..."
    text: str
    question: Json = None  # the argument of the student's function, plain data
    make: str = ""  # a function of `text` that makes the arguments from the question, in the student's worker, too
    accepts: Callable[[Values], str] = lambda inputs: ""  # returns why these inputs are not accepted; empty if they are
    explain: Callable[[Values], str] = lambda inputs: ""  # returns why both results may be equal; empty if unknown
    fails: Callable[[Values], str] = lambda inputs: ""  # returns why the wrong version may raise; empty if unknown
    spoils: Callable[[Values], str] = lambda result: ""  # returns why the right version's result is wrong, too
    graphs: int = 0  # programs that the inputs may hold
    max_elements: int = 1 << 16  # of all tensors together
    max_number: float = 1e4  # limit for the magnitude of every number, inside or outside tensors
    silent: bool = True  # the wrong result must have the form of the right one, so that only values differ
    wrong: str = "the wrong version"  # its name in messages
    right: str = "the right version"


class CounterexampleAnswer:
    """Ask the student's function for inputs in one worker, and run programs on them in another."""

    def __init__(self, student: Session, clean: Session) -> None:
        self._student, self._clean = student, clean
        self._loaded = ""

    def ask(self, trial: Trial) -> Values:
        """Return the function's inputs after checks; raises `CheckFailedError` for inputs that are not accepted."""
        request = FindInputs(trial.question, trial.text if trial.make else "", trial.make)
        reply, _ = self._student.call(request)
        inputs = read_values(reply)
        require_bounded(inputs, graphs=trial.graphs, max_elements=trial.max_elements, max_number=trial.max_number)
        if complaint := trial.accepts(inputs):
            raise CheckFailedError(complaint)
        return inputs

    def run(self, trial: Trial, program: str, inputs: Values, seed: int, *, double: bool = False) -> Values:
        """Return the result of the trial's function `program` on `inputs`."""
        if trial.text != self._loaded:
            self._clean.reload(LoadTrial(trial.text), ())
            self._loaded = trial.text
        request = RunTrial(program, seed, double, inputs.packed)
        reply, _ = self._clean.call(request, inputs.tensors)
        return read_values(reply)

    def run_on_question(self, trial: Trial, program: str, inputs: Values) -> Values:
        """Return the result of the trial's function `program` on its question and the tensors of `inputs`."""
        tensors = [{"tensor": number} for number in range(len(inputs.tensors))]
        given = PackedValue({"tuple": [_packed(trial.question), *tensors]}, ())
        return self.run(trial, program, Values(given, inputs.tensors, None), 0)


def text_of(module: ModuleType) -> str:
    """Return the text of one of our modules, as the text of a trial."""
    return inspect.getsource(module)


def _packed(ours: Json) -> Json:
    """Return plain data of ours in the form of `PackedValue`."""
    if isinstance(ours, dict):
        return {"dict": {key: _packed(value) for key, value in ours.items()}}
    return [_packed(value) for value in ours] if isinstance(ours, list) else ours


def disproves(
    trials: Callable[[Draw], Sequence[Trial]], *, together: bool = False
) -> Callable[[CounterexampleAnswer, Draw], None]:
    """Return a check that the answer disproves the wrong program of each trial; the trials share its points equally.

    With `together`, all of them have to be disproved.
    """

    def run(answer: CounterexampleAnswer, draw: Draw) -> None:
        def require(trial: Trial) -> None:
            try:
                _require_difference(answer, trial, draw)
            except CheckFailedError as error:
                raise CheckFailedError(f"For {trial.name}: {error}") from None

        share_among(trials(draw), require, noun="versions", together=together)

    return run


def _require_difference(answer: CounterexampleAnswer, trial: Trial, draw: Draw) -> None:
    inputs, seed = answer.ask(trial), draw.integer(0, 2**31)
    eager = _result(answer, trial, "reference", inputs, seed)
    truth = _result(answer, trial, "reference", inputs, seed, double=True)
    right = _result(answer, trial, "right", inputs, seed)
    if differs := difference(right, truth, eager):
        raise CheckFailedError(
            trial.spoils(right)
            or f"{trial.right} also differs on this input: {differs} So it shows nothing about {trial.wrong}."
        )
    try:
        wrong = _result(answer, trial, "wrong", inputs, seed)
    except CheckFailedError as error:
        noticed = "Anybody would notice that: find an input on which it runs, and only values differ."
        raise CheckFailedError(" ".join(filter(None, (str(error), trial.fails(inputs), noticed)))) from None
    if trial.silent and (form := _form_differs(wrong, eager)):
        raise CheckFailedError(
            f"{trial.wrong} gives {form} on this input: anybody would notice. Find one on which only values differ."
        )
    if not difference(wrong, truth, eager):
        hint = trial.explain(inputs) or "Find an input on which the step that it gets wrong makes a difference."
        raise CheckFailedError(f"{trial.wrong} gives the same result on this input. {hint}")


def _result(
    answer: CounterexampleAnswer, trial: Trial, program: str, inputs: Values, seed: int, *, double: bool = False
) -> Values:
    try:
        return answer.run(trial, program, inputs, seed, double=double)
    except AnswerFailedError as error:
        who = {"right": trial.right, "wrong": trial.wrong}.get(program, "the program itself")
        raise CheckFailedError(f"{who} does not run on this input: {error.message}") from None


def difference(actual: Values, truth: Values, eager: Values) -> str:
    """Return a sentence about the first place where `actual` breaks the error rule; empty if there is none.

    `truth` is the reference's result in double precision, and `eager` its result in the inputs' precision.
    """
    if form := _form_differs(actual, eager):
        return f"It gives {form}."
    # in double precision a program may give a result of another form; then compare with `eager` alone
    exact = truth if leaves(truth).keys() == leaves(eager).keys() else eager
    for place, expected in leaves(eager).items():
        found, precise = leaves(actual)[place], leaves(exact)[place]
        if not isinstance(expected, torch.Tensor):
            if found != expected:
                return f"{place} is {found!r} where {expected!r} is right."
        else:
            same = isinstance(precise, torch.Tensor) and precise.shape == expected.shape
            measured = deviation(found, (precise if same else expected).double(), expected)
            if not measured.within_bound:
                return f"{place} is {measured}."
    return ""


def _form_differs(actual: Values, expected: Values) -> str:
    """Return the end of a sentence about the first difference in structure, type, shape or dtype; empty if none."""
    found, wanted = leaves(actual), leaves(expected)
    if found.keys() != wanted.keys():
        return f"{', '.join(found) or 'nothing'} where {', '.join(wanted) or 'nothing'} is right"
    for place, value in wanted.items():
        if _form(found[place]) != _form(value):
            return f"{place} as {_form(found[place])} where {_form(value)} is right"
    return ""


def _form(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


def read_values(reply: Result[PackedValue]) -> Values:
    """Read the values in a worker's reply.

    Raises `MalformedAnswerError` for a reply that no worker sends, and `CheckFailedError` for a graph with contents
    that are not allowed.
    """
    packed = reply.body
    tensors = tuple(map(shared_inputs.to_torch, reply.tensors))
    if len(packed.graphs) > MAX_GRAPHS:
        raise MalformedAnswerError
    rebuilt = [_graph(entry, reply.tensors) for entry in packed.graphs]
    reader = _Reader(tensors, rebuilt)
    return Values(packed, tensors, reader.read(packed.value))


def _graph(entry: PackedGraph, raws: Sequence[RawTensor]) -> fx.GraphModule:
    if not all(number < len(raws) for number in entry.tensors.values()):
        raise MalformedAnswerError
    written = WrittenGraph(entry.graph, tuple(entry.tensors))
    reply = Result(written, [raws[number] for number in entry.tensors.values()])
    artifact = read_graph(reply, "The program that was returned is refused: ", max_nodes=MAX_NODES)
    return from_data(artifact.graph, artifact.tensors)


class _Reader:
    """Read one value, counting its parts against one limit."""

    def __init__(self, tensors: Sequence[torch.Tensor], graphs: Sequence[fx.GraphModule]) -> None:
        self._places = {"tensor": tensors, "graph": graphs}
        self._count = 0

    def read(self, data: Json, depth: int = 0) -> Any:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise CheckFailedError(
                f"The answer has more than {MAX_VALUES} parts, or is nested deeper than {MAX_DEPTH}."
            )
        if data is None or type(data) in (bool, int, float):
            return data
        if type(data) is str:
            if len(data) > MAX_TEXT:
                raise CheckFailedError(f"The answer holds a text of {len(data):,} characters; {MAX_TEXT:,} are enough.")
            return data
        if type(data) is list:
            return [self.read(item, depth + 1) for item in data]
        if type(data) is not dict or len(data) != 1:
            raise MalformedAnswerError
        ((tag, content),) = data.items()
        return self._tagged(tag, content, depth)

    def _tagged(self, tag: str, content: Json, depth: int) -> Any:
        if tag in self._places and type(content) is int and 0 <= content < len(self._places[tag]):
            return self._places[tag][content]
        if tag == "tuple" and type(content) is list:
            return tuple(self.read(item, depth + 1) for item in content)
        if tag == "dict" and type(content) is dict:
            return {key: self.read(item, depth + 1) for key, item in content.items()}
        if tag == "float" and content in ("nan", "inf", "-inf"):
            return float(content)
        raise MalformedAnswerError


def leaves(values: Values) -> Mapping[str, Any]:
    """Return a mapping from positions, such as `the result[0]`, to tensors, graphs and plain values."""
    return dict(_leaves(values.value, "the result"))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _leaves(item, f"{place}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}[{key!r}]")
    else:
        yield place, value


def require_bounded(inputs: Values, *, graphs: int, max_elements: int, max_number: float) -> None:
    """Raise `CheckFailedError` for inputs that are too many, too large or not finite, and for too many programs."""
    plain = [leaf for leaf in leaves(inputs).values() if not isinstance(leaf, torch.Tensor)]
    if len(inputs.graphs) > graphs:
        asked = f"{graphs} are asked for" if graphs else "none is asked for"
        raise CheckFailedError(f"The answer holds {len(inputs.graphs)} programs where {asked}.")
    elements = sum(t.numel() for t in inputs.tensors)
    if elements > max_elements:
        raise CheckFailedError(
            f"The answer has {elements:,} elements of tensors; at most {max_elements:,} may be used."
        )
    for value in (*inputs.tensors, *plain):  # tensors include the parameters of programs
        numbers = value if isinstance(value, torch.Tensor) else torch.tensor(_number(value), dtype=torch.float64)
        if numbers.is_complex():
            raise CheckFailedError("The answer holds complex numbers; use real ones.")
        if not bool(torch.isfinite(numbers).all()):
            raise CheckFailedError("The answer holds NaN or infinity; find an input of ordinary numbers.")
        if numbers.numel() and float(numbers.double().abs().max()) > max_number:
            raise CheckFailedError(f"The answer holds a number larger than {max_number:g}; smaller ones are enough.")


def _number(value: Any) -> float:
    if type(value) is int:
        return math.inf if abs(value) > 1e300 else float(value)
    return value if type(value) is float else 0.0
