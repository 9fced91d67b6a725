"""No reply of a worker, however wrong, makes a fault of the grader: whoever could cause one would void the grading."""

import copy
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pytest
import torch

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE, CheckFailedError, Exercise, Kind
from autograder.host.grading import graded_parts
from autograder.host.kinds.callable import CallableAnswer
from autograder.host.kinds.table import KINDS
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError, Session, result_of
from autograder.host.shared_inputs import to_raw
from autograder.protocol import Message, ProtocolError, RawTensor, Request, Result
from autograder.protocol.requests.loads import Load, LoadAnswer, Part
from tests.autograder.host.in_process import InProcess, crossed, handlers_of
from tests.drawn import some

R = TypeVar("R")
EXPECTED = (CheckFailedError, AnswerFailedError, MalformedAnswerError, ProtocolError)
TRIES = 12  # of each check
SLOW = {
    Kind.ARCHIVE: 2,
    Kind.CAPTURED: 1,
    Kind.COUNTEREXAMPLE: 4,
    Kind.GRAPH: 3,
    Kind.MODULE: 1,
    Kind.SCHEDULE: 1,
    Kind.TRITON: 4 if os.environ.get("WHOLE") else 2,
}
"""Fewer where the honest part of a try, which compiles, trains or interprets kernels, takes longer."""
LOWERING = "09"  # in whose checks the host has Inductor lower programs
SEARCHING = {"08_partition": 4}  # in whose checks the host tries all cuts of a graph
TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "double": torch.Tensor.double,
    "half": torch.Tensor.half,
    "boolean": torch.Tensor.bool,
    "bytes": lambda t: t.to(torch.uint8),
    "flat": torch.Tensor.flatten,
    "scalar": torch.Tensor.sum,
    "none": lambda t: t[:0] if t.ndim else t[None][:0],
    "deep": lambda t: t.reshape(t.shape + (1,) * (16 - t.ndim)),
    "wide": lambda t: t.expand(2, *t.shape).contiguous(),
    "nan": lambda t: torch.full_like(t, torch.nan),
    "infinite": lambda t: torch.full_like(t, torch.inf),
    "tiny": lambda t: torch.full_like(t, 1e-45),
    "negative": lambda t: torch.full_like(t, -5),
    "beyond": lambda t: torch.full_like(t, 1e11),
    "largest": lambda t: torch.full_like(t, (torch.finfo if t.is_floating_point() else torch.iinfo)(t.dtype).max),
    "transposed": lambda t: t.transpose(0, -1).contiguous() if t.ndim else t,
}
# Of numbers the largest that a message may hold, and the smallest.
VALUES: tuple[Any, ...] = (
    None, True, -1, 10**299, 1e308, -1e308, 5e-324, -0.0, "", "\ud800\u202e", [], [[]] * 50, {}, ["x"] * 3,
    {"": None}, [10**6, -7], {"node": "x"}, {"tensor": 10**20}, "__class__", [{"name": 1}], {"nodes": {}},
)  # fmt: skip


def load_of(exercise: Exercise) -> LoadAnswer:
    """The reference solution, which is ours."""
    text = next(c.answer for c in controls(exercise.id) if c.name == REFERENCE)
    parts = tuple(Part(name, cell) for name, cell in graded_parts(exercise, {exercise.id: text}).items())
    return LoadAnswer(exercise.kind.value, exercise.entry_point, parts)


class KernelWorker:
    """A real worker for kernels, as Triton's interpreter changes its process; replies are corrupted on their way."""

    def __init__(self) -> None:
        self.corrupt: Callable[[Message], Message] = lambda message: message
        self._session = Session(open_sandbox(), None)
        self.close = self._session.close

    def reload(self, load: Load, tensors: Sequence[RawTensor]) -> None:
        self._session.reload(load, tensors)

    def call_with(self, request: Request[R], tensors: Sequence[RawTensor]) -> Result[R]:
        honest = self._session.call_with(request, tensors)
        return result_of(request, self.corrupt(crossed(honest.body, honest.tensors)))


def corrupted_tensor(raw: RawTensor, chance: random.Random) -> RawTensor:
    flat = torch.frombuffer(bytearray(raw.data) or bytearray(8), dtype=getattr(torch, raw.dtype))
    tensor = flat.as_strided(raw.shape, raw.strides) if len(raw.data) else torch.empty(raw.shape, dtype=flat.dtype)
    try:
        return to_raw(TENSORS[chance.choice(list(TENSORS))](tensor))
    except (RuntimeError, TypeError, OverflowError):  # no such number in this dtype
        return raw


def corrupted_value(value: Any, chance: random.Random) -> Any:
    """The value with something else in one place, at whatever depth."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: corrupted_value(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        return [*value[:place], corrupted_value(value[place], chance), *value[place + 1 :]]
    return copy.deepcopy(chance.choice(VALUES))


def corruption(chance: random.Random, *, after: int) -> Callable[[Message], Message]:
    """Corrupts the message number `after`, and each later one now and then."""
    seen = 0

    def corrupt(message: Message) -> Message:
        nonlocal seen
        seen += 1
        if seen <= after or (seen > after + 1 and chance.random() < 0.5):
            return message
        body, tensors = message.body, list(message.tensors)
        if tensors and chance.random() < 0.7:
            place = chance.randrange(len(tensors))
            tensors[place] = corrupted_tensor(tensors[place], chance)
        else:
            body = corrupted_value(body, chance)
            body = body if isinstance(body, dict) else {"value": body}
        if chance.random() < 0.1:
            tensors = tensors[:-1] or [to_raw(torch.zeros(3))]
        return Message(body, tuple(tensors))

    return corrupt


@pytest.fixture(scope="module")
def kernel_worker() -> Iterator[KernelWorker]:
    worker = KernelWorker()
    yield worker
    worker.close()


@pytest.mark.parametrize("exercise_id", some(all_exercises(), 4, name="exercises"))
def test_a_corrupted_reply_is_a_wrong_answer_and_never_a_fault_of_ours(
    exercise_id: str, kernel_worker: KernelWorker
) -> None:
    exercise = find(exercise_id, hidden=True)
    load = load_of(exercise)
    honest = handlers_of(load) if exercise.kind is not Kind.TRITON else {}
    at_most = 1 if exercise.assignment == LOWERING else SEARCHING.get(exercise_id, TRIES)
    tries = min(SLOW.get(exercise.kind, TRIES), at_most)
    failed = replies = 0

    def counted(corrupt: Callable[[Message], Message]) -> Callable[[Message], Message]:
        def one(message: Message) -> Message:
            nonlocal replies
            replies += 1
            return corrupt(message)

        return one

    for number in range(tries * len(exercise.checks)):
        check, chance = exercise.checks[number % len(exercise.checks)], random.Random(number)
        corrupt = counted(corruption(chance, after=chance.randrange(3)))
        student: Any = InProcess(honest, corrupt)
        student.load = load
        clean: Any = InProcess()
        if exercise.kind is Kind.TRITON:
            clean, kernel_worker.corrupt = kernel_worker, corrupt
        answer = KINDS[exercise.kind](student, clean)
        try:
            check.run(answer, Draw(number, exercise_id, check.name))
        except EXPECTED:
            failed += 1
    # Most corruptions are noticed; some, as another order of keys, are none. Where a text runs in a clean worker alone,
    # the answer's worker replies nothing.
    assert bool(failed) == bool(replies)


def test_an_uncorrupted_reply_passes_every_check() -> None:
    exercise = find("01_scaled_dot_product", hidden=True)
    for check in exercise.checks:
        student: Any = InProcess(handlers_of(load_of(exercise)))
        check.run(CallableAnswer(student), Draw(1, check.name))
