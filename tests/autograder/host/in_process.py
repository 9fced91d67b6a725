"""A session whose worker is this process: requests and replies cross as JSON, and nothing else does."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from autograder.host.records import ExerciseStatus
from autograder.host.session import AnswerFailedError, result_of
from autograder.host.shared_inputs import to_raw
from autograder.protocol import Handlers, Message, RawTensor, Request, Result
from autograder.protocol.contract import request_body
from autograder.protocol.decoder import encode
from autograder.protocol.requests.loads import Load
from autograder.worker import main

R = TypeVar("R")


def crossed(body: object, tensors: Sequence[RawTensor]) -> Message:
    """Return a message as the other side reads it."""
    return Message(json.loads(json.dumps(body, default=encode)), tuple(tensors))


def handlers_of(load: Load, tensors: Sequence[RawTensor] = ()) -> Handlers:
    """Return what a worker serves once it has loaded this."""
    return main.load(crossed(request_body(load), tensors))


class InProcess:
    """A stand-in for `autograder.host.session.Session`; `corrupt` changes each reply on its way."""

    def __init__(
        self, handlers: Handlers | None = None, corrupt: Callable[[Message], Message] = lambda message: message
    ) -> None:
        self.load: Load | None = None
        self._handlers, self._corrupt = handlers or {}, corrupt

    def call(self, request: Request[R], inputs: Sequence[torch.Tensor] = ()) -> tuple[Result[R], list[int]]:
        return self.call_with(request, [to_raw(t) for t in inputs]), []

    def call_with(self, request: Request[R], tensors: Sequence[RawTensor]) -> Result[R]:
        try:
            result: Result[Any] = main.call(self._handlers, crossed(request_body(request), tensors))
        except Exception as error:  # as a worker reports what was raised in it
            message = f"{type(error).__name__}: {error}"
            raise AnswerFailedError(ExerciseStatus.STUDENT_ERROR, message, fatal=False) from None
        return result_of(request, self._corrupt(crossed(result.body, result.tensors)))

    def reload(self, load: Load, tensors: Sequence[RawTensor]) -> None:
        self.load, self._handlers = load, handlers_of(load, tensors)
