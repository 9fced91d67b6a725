"""Call an answer that is a function from tensors to tensors, once, in several threads, or under the host's clock."""

from collections.abc import Callable
from typing import Any

from autograder.protocol import Result
from autograder.protocol.requests.answers import CallConcurrently, Called, CalledConcurrently, CallFunction
from autograder.worker import source
from autograder.worker.concurrent_calls import call_concurrently
from autograder.worker.handlers import Handlers, Tensors
from autograder.worker.rounds import Rounds
from autograder.worker.tensor_calls import call_on_tensors


def callable_answer(entry: Callable[..., Any]) -> Handlers:
    """Return what an answer of this kind serves."""

    def function(name: str) -> Callable[..., Any]:
        return source.function(name) if name else entry

    def call(request: CallFunction, tensors: Tensors) -> Result[Called]:
        return call_on_tensors(function(request.function), request.call, tensors)

    def concurrently(request: CallConcurrently, tensors: Tensors) -> Result[CalledConcurrently]:
        return call_concurrently(function(request.function), request, tensors)

    return {CallFunction: call, CallConcurrently: concurrently, **Rounds(entry).handlers()}
