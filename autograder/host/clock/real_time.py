"""Real-time priority for the sides of a trial, so that no other program interrupts a timed round."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from autograder.host.sandbox.resources.cgroup import leave_processor_group

PRIORITY = 1  # the lowest real-time priority, above every ordinary program


class RealTimePriority:
    """Run all sides of a trial before every other program, where the system permits it, so nothing interrupts a round.

    Either all processes are raised or none: a single raised side would seem several times as fast. Children of a
    worker are ordinary programs again, so an answer has at most one real-time thread. The kernel leaves a twentieth of
    the time to all others. `raised` lists the process ids; it is empty where the system refuses.

    Some kernels give real time to control groups, and a new group has none. There a worker leaves its group of
    processors as long as it is raised. A part of a second for each group would stop a worker amid a round.
    """

    def __init__(self) -> None:
        self.raised: list[int] = []
        self._groups: dict[int, Path] = {}

    def add(self, *pids: int) -> None:
        """Raise these processes too; if one cannot be raised, lower all of them."""
        for pid in pids:
            if pid <= 0 or not hasattr(os, "sched_setscheduler") or not self._raise(pid):
                self.drop()
                return
            self.raised.append(pid)

    def _raise(self, pid: int) -> bool:
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        if _schedule(pid, policy, PRIORITY):
            return True
        group = leave_processor_group(pid)
        if group is None:
            return False
        self._groups[pid] = group
        return _schedule(pid, policy, PRIORITY)

    def drop(self) -> None:
        """Make all of them ordinary programs again."""
        for pid in self.raised:
            _schedule(pid, os.SCHED_OTHER, 0)
        for pid, group in self._groups.items():
            with contextlib.suppress(OSError):  # the process has ended, and its group with it
                (group / "cgroup.procs").write_text(str(pid))
        self.raised, self._groups = [], {}


@contextlib.contextmanager
def real_time_priority() -> Iterator[RealTimePriority]:
    """Raise this thread first, and others as they are added; all are ordinary programs afterwards."""
    priority = RealTimePriority()
    priority.add(threading.get_native_id())
    try:
        yield priority
    finally:
        priority.drop()


def _schedule(pid: int, policy: int, priority: int) -> bool:
    with contextlib.suppress(OSError):  # not permitted, or the process has ended
        os.sched_setscheduler(pid, policy, os.sched_param(priority))
        return True
    return False
