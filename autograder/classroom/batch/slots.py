"""Threads that grade hand-ins; one that hangs costs its hand-in alone.

The threads of `concurrent.futures` are waited for when Python ends. So a thread that hangs would keep the command from
ending, and its slot from everybody else.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from autograder.classroom.hand_in import HandedIn
from autograder.host.records import SubmissionRecord

Done = tuple[HandedIn, SubmissionRecord | BaseException]


@dataclass(eq=False)
class Slot:
    """One thread, the hand-in that it grades, and since when."""

    hand_in: HandedIn | None = None
    since_s: float = 0.0
    is_left_behind: bool = False


@dataclass
class Slots:
    """Grade hand-ins with `grade` in `number` threads, each hand-in for at most `limit_s` seconds."""

    number: int
    limit_s: float
    grade: Callable[[HandedIn], SubmissionRecord]
    _waiting: "queue.SimpleQueue[HandedIn]" = field(default_factory=queue.SimpleQueue)
    _done: "queue.SimpleQueue[Done]" = field(default_factory=queue.SimpleQueue)
    _slots: list[Slot] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # held while a slot takes or gives back a hand-in

    def graded(self, hand_ins: Sequence[HandedIn]) -> Iterator[tuple[HandedIn, SubmissionRecord]]:
        """Yield each hand-in with its record when it is finished; raise what `grade` raises."""
        for hand_in in hand_ins:
            self._waiting.put(hand_in)
        for _ in range(min(self.number, len(hand_ins))):
            self._start()
        for _ in hand_ins:
            yield self._next()

    def close(self) -> None:
        """Start no further hand-in; those that are being graded are left behind."""
        with self._lock:
            for slot in self._slots:
                slot.is_left_behind = True

    def _next(self) -> tuple[HandedIn, SubmissionRecord]:
        while True:
            try:
                hand_in, record = self._done.get(timeout=self._patience_s())
            except queue.Empty:
                if (late := self._late()) is not None:
                    return late
                continue
            if isinstance(record, BaseException):
                raise record
            return hand_in, record

    def _patience_s(self) -> float:
        """Return the time until the first of the slots is late."""
        since_s = [slot.since_s for slot in self._slots if slot.hand_in is not None]
        return max(0.0, min(since_s, default=time.monotonic()) + self.limit_s - time.monotonic())

    def _late(self) -> tuple[HandedIn, SubmissionRecord] | None:
        for slot in list(self._slots):
            with self._lock:
                hand_in = slot.hand_in
                slot.is_left_behind = hand_in is not None and time.monotonic() - slot.since_s >= self.limit_s
            if hand_in is not None and slot.is_left_behind:
                self._slots.remove(slot)
                self._start()
                return hand_in, hand_in.not_graded(f"A fault of the grader: it did not end within {self.limit_s:g} s.")
        return None

    def _start(self) -> None:
        slot = Slot()
        self._slots.append(slot)
        threading.Thread(target=self._work, args=(slot,), name="grading", daemon=True).start()

    def _work(self, slot: Slot) -> None:
        while (hand_in := self._taken(slot)) is not None:
            record: SubmissionRecord | BaseException
            try:
                record = self.grade(hand_in)
            except BaseException as error:  # raised where the records are taken
                record = error
            with self._lock:
                slot.hand_in = None
                if not slot.is_left_behind:  # else its hand-in has a record already
                    self._done.put((hand_in, record))

    def _taken(self, slot: Slot) -> HandedIn | None:
        """Give the next hand-in to a slot, or None if none waits or the slot is left behind."""
        with self._lock, contextlib.suppress(queue.Empty):
            if not slot.is_left_behind:
                slot.since_s, slot.hand_in = time.monotonic(), self._waiting.get_nowait()
                return slot.hand_in
        return None
