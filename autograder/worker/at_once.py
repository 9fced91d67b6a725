"""One function in several threads at once: what an answer keeps of a call, another call must not find."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from types import FrameType
from typing import Any

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor

Reply = tuple[dict[str, Any], list[RawTensor]]

REPEATS = 30
PASSED_ON = 0.3  # the share of lines after which it is another thread's turn
PATIENCE_S = 0.05  # then a thread goes on although it is not its turn: the other may wait for something it holds


def answer_at_once(call: Callable[[Message], Reply], message: Message, file: str) -> Reply:
    """Make every call of the message in a thread of its own, again and again, while the others make theirs.

    A thread gives way in the middle of functions that stand in ``file``, as their code objects name it: the student's.

    Body: ``at_once``, the bodies of the calls, each of which counts its own tensors, and ``counts``, how many of the
    message's tensors belong to each. Body of the reply: ``at_once``, two replies' bodies for each call, the first one
    that it gave and the first that differs from that, if any does; ``counts``, how many tensors belong to each.
    """
    tensors = iter(message.tensors)
    calls = [
        Message(body, tuple(next(tensors) for _ in range(count)))
        for body, count in zip(message.body["at_once"], message.body["counts"], strict=True)
    ]
    turns = _Turns(len(calls), file)
    with ThreadPoolExecutor(len(calls)) as pool:
        pairs = pool.map(lambda i: turns.steadily(i, lambda: call(calls[i])), range(len(calls)))
        replies = [reply for pair in pairs for reply in pair]
    counts = [len(raws) for _, raws in replies]
    return {"at_once": [body for body, _ in replies], "counts": counts}, [raw for _, raws in replies for raw in raws]


class _Turns:
    """Threads that pass their turn on in the middle of a function, since Python by itself seldom makes them."""

    def __init__(self, threads: int, file: str) -> None:
        self._file = file
        self._running, self._whose, self._changed = list(range(threads)), 0, Condition()

    def steadily(self, thread: int, call: Callable[[], Reply]) -> tuple[Reply, Reply]:
        """The first reply to a call that is made several times, and the first that differs from it, if any does."""

        def passes_on(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
            if frame.f_code.co_filename != self._file:
                return None
            if event == "line" and random.random() < PASSED_ON:
                self._pass_on(thread)
            return passes_on

        sys.settrace(passes_on)
        try:
            first = call()
            return first, next((again for again in (call() for _ in range(REPEATS - 1)) if again != first), first)
        finally:
            sys.settrace(None)
            self._end(thread)

    def _pass_on(self, thread: int) -> None:
        with self._changed:
            self._whose = self._running[(self._running.index(thread) + 1) % len(self._running)]
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._whose == thread, PATIENCE_S)

    def _end(self, thread: int) -> None:
        with self._changed:
            at = self._running.index(thread)
            self._running.remove(thread)
            if self._running:
                self._whose = self._running[at % len(self._running)]
            self._changed.notify_all()
