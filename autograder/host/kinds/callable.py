"""Answers that are functions on tensors; every check of them needs a call and a comparison by the error rule."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host import comparison, shared_inputs
from autograder.host.artifacts.operator_source import OperatorTextRefusedError, checked_operator_text
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import AnswerRefusedError, CheckFailedError
from autograder.host.kinds.sent_tensors import other_values
from autograder.host.session import Session
from autograder.protocol import Json, RawTensor, Result
from autograder.protocol.requests.answers import (
    Arguments,
    CallConcurrently,
    Called,
    CalledConcurrently,
    CallFunction,
    TensorCall,
)
from autograder.protocol.requests.loads import Cost, LoadAnswer, LoadOperators, Part

Reference = Callable[..., Any]
"""The formula on tensors of any floating dtype: called in fp64 for the truth and at the inputs' dtype for eager's own
error.
"""


@dataclass(frozen=True)
class Case:
    """One call; `args` and `kwargs` may contain tensors."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""  # completes "... is off by 0.1", e.g. "with head size 3"

    @property
    def where(self) -> str:
        """Return the label as the end of a clause."""
        return f" {self.label}" if self.label else ""


@dataclass(frozen=True)
class Reply:
    """The result of one call; the host made its tensors from bytes."""

    outputs: tuple[torch.Tensor, ...]
    is_tuple: bool
    gradients: tuple[torch.Tensor | None, ...]
    mutated: tuple[int, ...]  # which tensors among the arguments were written to
    aliases: tuple[int, ...]  # which outputs share memory with an input
    cost: Cost | None = None  # None if not requested

    @property
    def counted(self) -> Cost:
        """Return the cost; raises `MalformedAnswerError` if the reply lacks it."""
        if self.cost is None:
            raise MalformedAnswerError
        return self.cost


OPERATORS = "torch.ops."


class CallableAnswer:
    """Call the student's function on tensors."""

    def __init__(self, session: Session, clean: Session | None = None, function: str = "") -> None:
        self.student, self._clean = session, clean
        self._function = function

    def function(self, name: str) -> "CallableAnswer":
        """Return a `CallableAnswer` for another function of the answer, or for an operator that its text registers.

        Operators run where no other Python of the student is; raises `AnswerRefusedError` for a text that needs it.
        """
        session = self._operators() if OPERATORS in name else self.student
        return CallableAnswer(session, self._clean, name)

    def _operators(self) -> Session:
        load, clean = self.student.load, self._clean
        assert clean is not None, "the judge gives a clean worker"
        if isinstance(load, LoadAnswer):
            part = _checked(load.parts[-1])
            if isinstance(part, str):
                raise AnswerRefusedError(part)
            if clean.load != LoadOperators(part):
                clean.reload(LoadOperators(part), ())
        return clean

    def call(self, case: Case, *, cotangents: Sequence[torch.Tensor] = (), wrt: Sequence[int] = ()) -> Reply:
        """Call once; `wrt` numbers the tensors to differentiate by, `cotangents` are the outputs' gradients.

        A call with other values of the same sizes comes first, so that a function that keeps results is wrong.
        """
        call, tensors = placed_call(case, cotangents, wrt)
        earlier, others = placed_call(case)
        self.student.call(CallFunction(self._function, earlier), list(map(other_values, others)))
        result, mutated = self.student.call(CallFunction(self._function, call), tensors)
        return read_called(result.body, result.tensors, mutated, len(wrt))

    def call_concurrently(self, cases: Sequence[Case]) -> list[tuple[Reply, Reply]]:
        """Repeat each call in its own thread; return its first reply and, if any reply differs, one that does."""
        calls, tensors = zip(*map(placed_call, cases), strict=True)
        request = CallConcurrently(self._function, calls, tuple(map(len, tensors)))
        result, mutated = self.student.call(request, [t for of_one in tensors for t in of_one])
        if mutated:
            raise CheckFailedError(f"The function wrote into its input number {mutated[0]}.")
        replies = _read_replies(result, 2 * len(cases))
        return list(zip(replies[::2], replies[1::2], strict=True))


@functools.lru_cache(maxsize=8)  # several checks of each answer ask
def _checked(part: Part) -> Part | str:
    """Return the part with the text that may run as operators, or what is wrong with its text."""
    try:
        return Part(part.name, checked_operator_text(part.text))
    except OperatorTextRefusedError as error:
        return str(error)


def placed(arguments: Sequence[Any], kwargs: Mapping[str, Any], tensors: list[torch.Tensor]) -> Arguments:
    """Return arguments in the form in which they are sent; tensors among them are added to `tensors`."""
    args = tuple(_placed(a, tensors) for a in arguments)
    return Arguments(args, {name: _placed(a, tensors) for name, a in kwargs.items()})


def placed_call(
    case: Case, cotangents: Sequence[torch.Tensor] = (), wrt: Sequence[int] = ()
) -> tuple[TensorCall, list[torch.Tensor]]:
    """Return a call in the form in which it is sent, and its tensors."""
    tensors: list[torch.Tensor] = []
    arguments = placed(case.args, case.kwargs, tensors)
    numbers = tuple(range(len(tensors), len(tensors) + len(cotangents)))
    return TensorCall(arguments, tuple(wrt), numbers), [*tensors, *cotangents]


def _placed(argument: Any, tensors: list[torch.Tensor]) -> Json:
    if not isinstance(argument, torch.Tensor):
        return argument
    tensors.append(argument)
    return {"tensor": len(tensors) - 1}


def read_called(called: Called, raws: Sequence[RawTensor], mutated: Sequence[int], wrt: int) -> Reply:
    """Read the reply to a call with `wrt` gradients; raises `MalformedAnswerError` for another form."""
    if len(called.gradients) != wrt:
        raise MalformedAnswerError
    if len(raws) != called.outputs + sum(called.gradients):
        raise MalformedAnswerError("The worker sent another number of tensors than it says.")
    tensors = [shared_inputs.to_torch(raw) for raw in raws]
    gradients = iter(tensors[called.outputs :])
    return Reply(
        outputs=tuple(tensors[: called.outputs]),
        is_tuple=called.is_tuple,
        gradients=tuple(next(gradients) if there else None for there in called.gradients),
        mutated=tuple(mutated),
        aliases=tuple(a for a in called.aliases if 0 <= a < called.outputs),
    )


def _read_replies(result: Result[CalledConcurrently], number: int) -> list[Reply]:
    calls, rest = result.body.calls, result.tensors
    if len(calls) != number:
        raise MalformedAnswerError
    replies = []
    for called in calls:
        replies.append(read_called(called, rest[: called.outputs], (), 0))
        rest = rest[called.outputs :]
    if rest:
        raise MalformedAnswerError("The worker sent another number of tensors than it says.")
    return replies


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    """Return the outputs of a reference, always as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def promoted(case: Case) -> Case:
    """Return the case with its floating-point tensors in fp64."""

    def double(argument: Any) -> Any:
        return argument.double() if isinstance(argument, torch.Tensor) and argument.is_floating_point() else argument

    return Case(tuple(map(double, case.args)), {k: double(a) for k, a in case.kwargs.items()}, case.label)


def require_outputs(reply: Reply, case: Case, reference: Reference, names: Sequence[str]) -> None:
    """Raise `CheckFailedError` unless number, form and values of the outputs are those of `reference`."""
    truths = as_tuple(reference(*promoted(case).args, **promoted(case).kwargs))
    eagers = as_tuple(reference(*case.args, **case.kwargs))
    if len(reply.outputs) != len(truths):
        raise CheckFailedError(
            f"The function returned {len(reply.outputs)} outputs; expected {len(truths)}: {', '.join(names)}."
        )
    for actual, truth, eager, name in zip(reply.outputs, truths, eagers, names, strict=True):
        comparison.require_close(actual, truth, eager, name, case.where)


def require_gradients(
    reply: Reply,
    case: Case,
    reference: Reference,
    cotangents: Sequence[torch.Tensor],
    names: Sequence[str],
    missing: Callable[[int], str],
) -> None:
    """Raise `CheckFailedError` unless the gradients, called `names`, by the first arguments are the reference's.

    `missing(i)` returns the sentence for a missing gradient by argument `i`.
    """
    truths = gradients_of(promoted(case), reference, [c.double() for c in cotangents], len(names))
    eagers = gradients_of(case, reference, cotangents, len(names))
    for number, (found, truth, eager) in enumerate(zip(reply.gradients, truths, eagers, strict=True)):
        if found is None:
            raise CheckFailedError(missing(number))
        comparison.require_close(found, truth, eager, names[number], case.where)


def gradients_of(
    case: Case, reference: Reference, cotangents: Sequence[torch.Tensor], count: int
) -> tuple[torch.Tensor, ...]:
    """Return the reference's gradients by the first `count` arguments."""
    leaves = [a.detach().clone().requires_grad_() for a in case.args[:count]]
    outputs = as_tuple(reference(*leaves, *case.args[count:], **case.kwargs))
    return torch.autograd.grad(outputs, leaves, list(cotangents))
