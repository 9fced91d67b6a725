"""Answers that are functions on tensors, and what every such check needs: a call, and an honest comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host import comparison, shared_inputs
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.session import Session
from autograder.protocol import Message

Reference = Callable[..., Any]
"""The formula on tensors of any floating dtype: called in fp64 for the truth and at the inputs' dtype for eager's own
error.
"""


@dataclass(frozen=True)
class Case:
    """One call; tensors may stand among ``args`` and ``kwargs``."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""  # completes "... is off by 0.1", e.g. "with head size 3"

    @property
    def where(self) -> str:
        """The label as the end of a clause."""
        return f" {self.label}" if self.label else ""


@dataclass(frozen=True)
class Reply:
    """What came back from one call: tensors of the host's own, made from bytes."""

    outputs: tuple[torch.Tensor, ...]
    is_tuple: bool
    gradients: tuple[torch.Tensor | None, ...]
    mutated: tuple[int, ...]  # which tensors among the arguments were written to
    aliases: tuple[int, ...]  # which outputs share memory with an input
    cost: Mapping[str, int] = field(default_factory=dict)


class CallableAnswer:
    """Calls a function on tensors: the student's own, or a graph that the host rebuilt."""

    def __init__(self, session: Session, function: str = "") -> None:
        self.student = session
        self._function = function

    def function(self, name: str) -> CallableAnswer:
        """Another function of the same answer, where an exercise asks for two."""
        return CallableAnswer(self.student, name)

    def call(
        self, case: Case, *, cotangents: Sequence[torch.Tensor] = (), wrt: Sequence[int] = (), count: bool = False
    ) -> Reply:
        """Call once; ``wrt`` numbers the tensors to differentiate by, ``cotangents`` are the outputs' gradients."""
        body, tensors = self._body(case)
        body |= {"wrt": list(wrt), "count": count}
        body |= {"cotangents": list(range(len(tensors), len(tensors) + len(cotangents)))}
        message, mutated = self.student.call(body, [*tensors, *cotangents])
        return read_reply(message, mutated, len(wrt))

    def call_at_once(self, cases: Sequence[Case]) -> list[tuple[Reply, Reply]]:
        """Make each call in a thread of its own, many times: its first reply, and one that differs from it if any."""
        bodies, tensors = zip(*map(self._body, cases), strict=True)
        counts = [len(of_one) for of_one in tensors]
        message, mutated = self.student.call(
            {"at_once": list(bodies), "counts": counts}, [t for of_one in tensors for t in of_one]
        )
        if mutated:
            raise CheckFailedError(f"The function wrote into its input number {mutated[0]}.")
        replies = _read_replies(message, 2 * len(cases))
        return list(zip(replies[::2], replies[1::2], strict=True))

    def _body(self, case: Case) -> tuple[dict[str, Any], list[torch.Tensor]]:
        tensors: list[torch.Tensor] = []
        args = [placed(a, tensors) for a in case.args]
        kwargs = {k: placed(a, tensors) for k, a in case.kwargs.items()}
        body = {"args": args, "kwargs": kwargs, "wrt": [], "cotangents": [], "function": self._function}
        return body, tensors


def placed(argument: Any, tensors: list[torch.Tensor]) -> Any:
    """The argument as it stands in a body; a tensor is added to ``tensors``."""
    if not isinstance(argument, torch.Tensor):
        return argument
    tensors.append(argument)
    return {"tensor": len(tensors) - 1}


def read_reply(message: Message, mutated: list[int], wrt: int) -> Reply:
    """What a worker says of a call that asked for ``wrt`` gradients; raises `MalformedAnswerError`."""
    body = message.body
    outputs, has = body.get("outputs"), body.get("gradients")
    if (
        type(outputs) is not int
        or outputs < 0
        or not isinstance(has, list)
        or len(has) != wrt
        or not all(type(h) is bool for h in has)
    ):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    if len(message.tensors) != outputs + sum(has):
        raise MalformedAnswerError("The worker sent another number of tensors than it says.")
    tensors = [shared_inputs.to_torch(raw) for raw in message.tensors]
    gradients = iter(tensors[outputs:])
    aliases = body.get("aliases")
    cost = body.get("cost", {})
    return Reply(
        outputs=tuple(tensors[:outputs]),
        is_tuple=body.get("is_tuple") is True,
        gradients=tuple(next(gradients) if h else None for h in has),
        mutated=tuple(mutated),
        aliases=tuple(a for a in aliases if type(a) is int and 0 <= a < outputs) if isinstance(aliases, list) else (),
        cost={k: v for k, v in cost.items() if type(v) is int} if isinstance(cost, dict) else {},
    )


def _read_replies(message: Message, number: int) -> list[Reply]:
    bodies, counts = message.body.get("at_once"), message.body.get("counts")
    if not (isinstance(bodies, list) and isinstance(counts, list) and len(bodies) == len(counts) == number):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    if not all(type(c) is int and c >= 0 for c in counts) or sum(counts) != len(message.tensors):
        raise MalformedAnswerError("The worker sent another number of tensors than it says.")
    if not all(isinstance(body, dict) for body in bodies):
        raise MalformedAnswerError("The worker sent a reply of another form.")
    tensors = iter(message.tensors)
    return [
        read_reply(Message(body, tuple(next(tensors) for _ in range(count))), [], 0)
        for body, count in zip(bodies, counts, strict=True)
    ]


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    """The outputs of a reference, always as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def promoted(case: Case) -> Case:
    """The case with its floating-point tensors in fp64."""
    return Case(tuple(_double(a) for a in case.args), {k: _double(a) for k, a in case.kwargs.items()}, case.label)


def _double(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor) and argument.is_floating_point():
        return argument.double()
    return argument


def require_outputs(reply: Reply, case: Case, reference: Reference, names: Sequence[str]) -> None:
    """Raise `CheckFailedError` unless number, form and values of the outputs are those of ``reference``."""
    truths = as_tuple(reference(*promoted(case).args, **promoted(case).kwargs))
    eagers = as_tuple(reference(*case.args, **case.kwargs))
    if len(reply.outputs) != len(truths):
        raise CheckFailedError(
            f"The function returned {len(reply.outputs)} outputs; expected {len(truths)}: {', '.join(names)}."
        )
    for actual, truth, eager, name in zip(reply.outputs, truths, eagers, names, strict=True):
        comparison.require_close(actual, truth, eager, name, case.where)
