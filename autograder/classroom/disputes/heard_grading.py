"""Grade an exercise again on the same inputs, and listen to what the checks ask the workers.

Everything that is heard is data: requests that the host made, and replies that it has decoded.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.classroom.hand_in import graded_exercise
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise
from autograder.host.kinds.differences import same
from autograder.host.records import CheckRecord, ExerciseRecord
from autograder.host.sandbox import Sandbox
from autograder.host.session import Session
from autograder.host.shared_inputs import to_torch
from autograder.protocol import ProtocolError, RawTensor, Request, Result
from autograder.protocol.requests.answers import Value
from autograder.protocol.requests.loads import LoadAnswer

RTOL, ATOL = 1e-3, 1e-5  # far above rounding: a difference beyond them is no matter of taste


@dataclass(frozen=True)
class Heard:
    """One request of a check to a worker, and the reply."""

    of_answer: bool  # whether the worker holds the answer; another one runs what answers return
    request: Request[Any]
    tensors: tuple[RawTensor, ...]
    reply: Result[Any] | None  # None if the worker raised or ended

    def asks_alike(self, other: "Heard") -> bool:
        """Tell whether both are the same request with tensors of the same forms; their values may be other ones."""
        mine, theirs = ([(t.dtype, t.shape, t.strides) for t in each.tensors] for each in (self, other))
        return self.of_answer == other.of_answer and self.request == other.request and mine == theirs

    def asks_the_same(self, other: "Heard") -> bool:
        """Tell whether both are the same request with the same tensors."""
        pairs = zip(self.tensors, other.tensors, strict=False)
        return self.asks_alike(other) and all(bytes(mine.data) == bytes(theirs.data) for mine, theirs in pairs)


@dataclass
class HeardGrading:
    """The record of one exercise, and what was heard in each of its checks."""

    record: ExerciseRecord | None = None
    heard: dict[str, list[Heard]] = field(default_factory=dict)

    def check(self, name: str) -> CheckRecord:
        """Return the record of the check called `name`."""
        assert self.record is not None, "it was graded"
        return next(check for check in self.record.checks if check.name == name)


def grade_and_hear(exercise: Exercise, answers: Mapping[str, str], *, sandbox: Sandbox, seed: int) -> HeardGrading:
    """Grade `exercise` as a batch does, with the seed of one hand-in, and keep each request and reply."""
    result = HeardGrading()
    checks = tuple(replace(check, run=_heard(check, result)) for check in exercise.checks)
    result.record = graded_exercise(replace(exercise, checks=checks), answers, sandbox, seed)
    return result


def _heard(check: Check, result: HeardGrading) -> Any:
    def run(answer: Any, draw: Draw) -> None:
        heard = result.heard.setdefault(check.name, [])
        for session in _sessions(answer):
            session.hear = functools.partial(_keep, heard, isinstance(session.load, LoadAnswer))
        check.run(answer, draw)

    return run


def _sessions(answer: Any) -> Iterator[Session]:
    """Yield the sessions of an answer of any kind, which holds them as attributes, alone or in a list."""
    for value in vars(answer).values():
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Session))


def _keep(
    heard: list[Heard], of_answer: bool, request: Request[Any], tensors: Sequence[RawTensor], reply: Result[Any] | None
) -> None:
    heard.append(Heard(of_answer, request, tuple(tensors), reply))


def disputed(mine: list[Heard], reference: list[Heard]) -> list[tuple[Heard, Heard | None]]:
    """Return the request on which a check turned, with the reference's reply to the same one, if it was asked that.

    It is the first request of the answer whose reply differs from the reference's, or the last one. After it comes the
    last request about what the answer returned, if there was one.
    """
    asked = [each for each in mine if each.of_answer]
    pairs = [(each, _same_request(each, reference)) for each in asked]
    differing = [pair for pair in pairs if pair[1] is not None and not _alike(pair[0].reply, pair[1].reply)]
    chosen = differing[:1] or pairs[-1:]
    later = [each for each in mine if not each.of_answer][-1:]
    return [*chosen, *((each, _same_request(each, reference)) for each in later)]


def _same_request(wanted: Heard, among: list[Heard]) -> Heard | None:
    """Return the same request; where values are drawn again in each grading, one with tensors of the same forms."""
    same = (each for each in among if wanted.asks_the_same(each))
    alike = (each for each in among if wanted.asks_alike(each))
    return next(same, None) or next(alike, None)


def _alike(mine: Result[Any] | None, right: Result[Any] | None) -> bool:
    if mine is None or right is None:
        return mine is right
    values = isinstance(mine.body, Value) and isinstance(right.body, Value)
    if not (same(mine.body.value, right.body.value) if values else mine.body == right.body):
        return False
    return len(mine.tensors) == len(right.tensors) and all(map(close, mine.tensors, right.tensors))


def close(mine: RawTensor, right: RawTensor) -> bool:
    """Tell whether two tensors have one form, and values that differ by rounding at most."""
    try:
        found, expected = to_torch(mine), to_torch(right)
    except ProtocolError:
        return False
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    return torch.allclose(found, expected, rtol=RTOL, atol=ATOL, equal_nan=True)
