"""Put a trial before everything else on the machine, where the system lets us: a timed round is then not interrupted.

Either all who take part come first or nobody does: one side alone would look several times as fast as it is. What a
worker starts is an ordinary program again, so an answer has one thread in real time at most, and the kernel leaves a
twentieth of the time to all others.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

PRIORITY = 1  # the lowest of the real-time ones comes before every ordinary program


class Ahead:
    """Who is scheduled in real time now; empty where the system does not let us."""

    def __init__(self) -> None:
        self.raised: list[int] = []

    def take(self, *pids: int) -> None:
        """Schedule these in real time beside those that are; if one of them cannot be, none is."""
        for pid in pids:
            if pid <= 0 or not _schedule(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, PRIORITY):
                self.drop()
                return
            self.raised.append(pid)

    def drop(self) -> None:
        """Make ordinary programs of all of them again."""
        for pid in self.raised:
            _schedule(pid, os.SCHED_OTHER, 0)
        self.raised = []


@contextlib.contextmanager
def ahead() -> Iterator[Ahead]:
    """Take this thread first, and others as they come; all are ordinary again afterwards."""
    first = Ahead()
    first.take(threading.get_native_id())
    try:
        yield first
    finally:
        first.drop()


def _schedule(pid: int, policy: int, priority: int) -> bool:
    with contextlib.suppress(OSError):  # no right to, or it is gone
        os.sched_setscheduler(pid, policy, os.sched_param(priority))
        return True
    return False
