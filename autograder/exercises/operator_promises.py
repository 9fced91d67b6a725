"""Checks that a registered operator is what it declares: what it writes to, and the form of its results.

A fake kernel and a schema are claims about the operator, so both are held against what the operator does to tensors.
"""

from collections.abc import Callable, Iterable, Sequence

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import CallableAnswer, Case, Reply

FAKE, DTYPES = "forms of ", "dtypes of "
WAYS = {FAKE: "On fake tensors", "real forms of ": "On real tensors"}
Cases = Callable[[Draw], Iterable[Case]]
Run = Callable[[CallableAnswer, Draw], None]


class _Honest(CallableAnswer):
    """An operator of an answer, whose calls fail if they write to an argument that is not declared as written."""

    def __init__(self, operator: CallableAnswer, writes: Sequence[int]) -> None:
        super().__init__(operator.student)
        self._operator, self._writes = operator, writes

    def call(self, case: Case, *, cotangents: Sequence[torch.Tensor] = (), wrt: Sequence[int] = ()) -> Reply:
        """Call once; raises `CheckFailedError` for an undeclared write."""
        reply = self._operator.call(case, cotangents=cotangents, wrt=wrt)
        if others := [number for number in reply.mutated if number not in self._writes]:
            raise CheckFailedError(
                f"The operator writes to its tensor number {others[0] + 1}{case.where}, and its schema is to say that "
                "it does not: a compiler may read the old values later. Use operators that return new tensors.",
                changes=True,
            )
        return reply


def honest(answer: CallableAnswer, name: str, *, writes: Sequence[int] = ()) -> CallableAnswer:
    """Return an operator, or what is asked about it; a call that writes to other tensors than these fails."""
    return _Honest(answer.function(name), writes)


def formed(
    name: str,
    shapes: Callable[..., Sequence[tuple[int, ...]]],
    names: Sequence[str],
    *cases: Cases,
    writes: Sequence[int] = (),
    dtypes: bool = True,
) -> Run:
    """Return a check that results have these shapes and are contiguous, both those of the fake kernel and real ones.

    With `dtypes`, the fake kernel also has to give the dtype of the first argument.
    """

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in (case for made in cases for case in made(draw)):
            wanted = [torch.empty(shape) for shape in shapes(*case.args)]
            for asked, where in WAYS.items():
                found = honest(answer, asked + name, writes=writes).call(case).outputs
                if len(found) != len(names):
                    raise CheckFailedError(f"{where} the operator returns {len(found)} results; expected {len(names)}.")
                for form, right, result in zip(found, wanted, names, strict=True):
                    _require_form(form, right, f"{where} {result}", case)
            empties = answer.function(DTYPES + name).call(case).outputs if dtypes else ()
            for empty, result in zip(empties, names, strict=False):
                if empty.dtype != case.args[0].dtype:
                    raise CheckFailedError(
                        f"On fake tensors {result} has dtype {_short(empty.dtype)}{case.where}; expected "
                        f"{_short(case.args[0].dtype)}. x.new_empty takes the dtype of x, torch.empty does not.",
                        changes=True,
                    )

    return run


def _require_form(found: torch.Tensor, right: torch.Tensor, told: str, case: Case) -> None:
    form, wanted = tuple(map(int, found.flatten().tolist())), (*right.shape, *right.stride())
    if form != wanted:
        same = form[: right.dim()] == wanted[: right.dim()]
        advice = "Make it contiguous, whatever the strides of the inputs are." if same else "Compute its shape."
        raise CheckFailedError(
            f"{told} has shape and strides {_said(form)}{case.where}; expected {_said(wanted)}. {advice}", changes=True
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _said(form: tuple[int, ...]) -> str:
    half = len(form) // 2
    return f"{form[:half]} and {form[half:]}"
