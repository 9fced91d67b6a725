"""Call an answer that is a function from tensors to tensors, once, in several threads, or under the host's clock."""

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from types import FrameType
from typing import Any

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import CallConcurrently, Called, CalledConcurrently, CallFunction
from autograder.worker import source
from autograder.worker.garbage import kept_while_tracing
from autograder.worker.rounds import Rounds
from autograder.worker.tensors import call_on_tensors

REPEATS = 30
SWITCH_PROBABILITY = 0.3
"""The probability of a switch to another thread at each line."""
PATIENCE_S = 0.05
"""A thread continues after this wait in any case, since the next thread may wait for a lock of this one."""


def callable_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a callable answer."""

    def function(name: str) -> Callable[..., Any]:
        return source.function(name) if name else entry

    def call(request: CallFunction, tensors: Tensors) -> Result[Called]:
        return call_on_tensors(function(request.function), request.call, tensors)

    def concurrently(request: CallConcurrently, tensors: Tensors) -> Result[CalledConcurrently]:
        return _call_concurrently(function(request.function), request, tensors)

    return {CallFunction: call, CallConcurrently: concurrently, **Rounds(entry).handlers()}


def _call_concurrently(
    function: Callable[..., Any], request: CallConcurrently, tensors: Tensors
) -> Result[CalledConcurrently]:
    """Make each call of the request repeatedly in its own thread, at the same time as the other calls.

    Threads switch inside functions that are defined in the same file as `function`, which is the student's file.
    """
    left = iter(tensors)
    own = [[next(left) for _ in range(count)] for count in request.counts]
    code = getattr(function, "__code__", None)  # a callable may not be a function
    switches = _Switches(len(request.calls), code.co_filename if code else "")

    def repeat(i: int) -> tuple[Result[Called], Result[Called]]:
        return switches.repeat(i, lambda: call_on_tensors(function, request.calls[i], own[i]))

    threads = len(request.calls)
    with kept_while_tracing(), ThreadPoolExecutor(threads) as pool:
        results = [result for pair in pool.map(repeat, range(len(request.calls))) for result in pair]
    body = CalledConcurrently(tuple(result.body for result in results))
    return Result(body, [raw for result in results for raw in result.tensors])


class _Switches:
    """Switch threads in the middle of a function, since Python itself does so seldom."""

    def __init__(self, threads: int, file: str) -> None:
        self._file = file
        self._running, self._next, self._changed = list(range(threads)), 0, Condition()

    def repeat(self, thread: int, call: Callable[[], Result[Called]]) -> tuple[Result[Called], Result[Called]]:
        """Repeat a call; return its first result, and the first result that differs from it, or the first again."""

        def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
            if frame.f_code.co_filename != self._file:
                return None
            if event == "line" and random.random() < SWITCH_PROBABILITY:
                self._switch(thread)
            return trace

        sys.settrace(trace)
        try:
            first = call()
            return first, next((again for again in (call() for _ in range(REPEATS - 1)) if again != first), first)
        finally:
            sys.settrace(None)
            self._end(thread)

    def _switch(self, thread: int) -> None:
        with self._changed:
            self._next = self._running[(self._running.index(thread) + 1) % len(self._running)]
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._next == thread, PATIENCE_S)

    def _end(self, thread: int) -> None:
        with self._changed:
            at = self._running.index(thread)
            self._running.remove(thread)
            if self._running:
                self._next = self._running[at % len(self._running)]
            self._changed.notify_all()
