"""Answers that are counterexamples: inputs on which a wrong program gives a wrong result, and a right one does not.

The student's function returns inputs: tensors, plain data, programs that torch.fx can trace. They are sent as data.
Then three programs of the host run on them in a worker that never saw the student's code. The `reference` gives the
true result, the `right` program must agree with it, and the `wrong` program must not. None of them may fail. So no
claim of the answer is trusted, and an input on which all programs fail proves nothing.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.returned_values import Values, leaves, read_values, require_bounded
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol import Json
from autograder.protocol.requests.answers import FindInputs, PackedValue
from autograder.protocol.requests.loads import LoadTrial, RunTrial
from course_lib.verify.error_rule import deviation


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
        inputs = read_values(self._student.call(request)[0])
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
        return read_values(self._clean.call(request, inputs.tensors)[0])

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
