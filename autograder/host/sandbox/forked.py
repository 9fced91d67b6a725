"""One worker that a zygote has forked: limited before it runs, ended by its keeper or with its namespace."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.host.sandbox import folder, watch
from autograder.host.sandbox.cgroup import Group
from autograder.host.sandbox.descriptors import process_of, readable
from autograder.host.sandbox.limits import MIB, Limits
from autograder.host.sandbox.process import Enclosure, StartError
from autograder.host.sandbox.slots import Slot
from autograder.protocol.orders import Orders

GO, STARTED, ENDED = b"go", b"started", b"ended "
START_S, GONE_S = 20.0, 15.0
SIGNALLED = -9


@dataclass
class Taken:
    """What was taken for one worker and is given back when it has ended."""

    slot: Slot | None = None
    group: Group | None = None
    private: Path | None = None
    give_back: Callable[[], None] = field(default=lambda: None)

    def release(self) -> None:
        """Give all back."""
        if self.group:
            self.group.remove()
        if self.slot:
            self.slot.release()
        if self.private:
            folder.remove(self.private)
        self.give_back()


class Forked(Enclosure):
    """A worker below a keeper, which the host holds on a leash."""

    def __init__(
        self, fork: Callable[[int, int, bytes, int], int], orders: Orders, limits: Limits, taken: Taken
    ) -> None:
        self._fork, self._orders, self._limits, self._taken = fork, orders, limits, taken
        self._keeper: int | None = None  # pidfds, and the numbers of their processes
        self._worker: int | None = None
        self._keeper_pid = self._first_pid = 0
        self._leash: socket.socket | None = None
        self.tick_s = 0.1 if taken.group else 0.025

    def spawn(self, channel: socket.socket, output: int) -> Leashed:
        """Have the keeper forked, limit it, and only then let it make the worker."""
        self._leash, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._keeper = self._fork(channel.fileno(), output, self._orders.to_json(), theirs.fileno())
        try:
            self._keeper_pid = process_of(self._keeper)
            if self._taken.group:
                self._taken.group.add(self._keeper_pid)
            self._leash.send(GO)
            said, received = self._hear()
            self._worker = received[0] if received else None
            if said != STARTED or self._worker is None:
                raise StartError("the worker could not confine itself")
            with contextlib.suppress(ProcessLookupError):  # it may have ended already
                self._first_pid = process_of(self._worker)
        except OSError as error:
            raise StartError(f"its keeper cannot be limited ({error})") from error
        return Leashed(self._leash, self._keeper)

    def explain(self, printed: str) -> str:
        """Return the last line of what was printed, which names the step that failed."""
        return f"A worker could not be forked ({(printed.splitlines() or ['no reason given'])[-1]})."

    def out_of_memory(self) -> str:
        """Ask the control group, or count."""
        allowed = self._limits.memory_bytes
        if self._taken.group:
            return f"used all of its {allowed / MIB:.0f} MB of memory" if self._taken.group.oom_kills() else ""
        return "" if self._gone(0.0) else watch.excess(self._processes(), allowed, tmpfs_of=self._first_pid)

    def misuse(self) -> str:
        """Count what lies in a folder of the host's file system, where no kernel does."""
        if self._taken.private is None or self._gone(0.0):
            return ""
        return folder.excess(self._taken.private, self._processes(), self._limits.tmp_bytes)

    def kill(self) -> None:
        """Kill the worker: with it goes its namespace, or its keeper ends all it has left behind."""
        if self._worker is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._worker, signal.SIGKILL)
        if self._taken.group:
            self._taken.group.kill()

    def exit_code(self, status: int) -> int:
        """Undo the way in which the first process of a namespace reports a signal, which is that of a shell."""
        return 128 - status if self._orders.mounts and status > 128 else status

    def close(self) -> None:
        """Let go of the leash, wait for the last process, then give back what was taken."""
        if self._leash is not None:
            self._leash.close()
        self._gone(GONE_S)
        for pidfd in (self._keeper, self._worker):
            if pidfd is not None:
                os.close(pidfd)
        self._keeper = self._worker = None
        self._taken.release()

    def _processes(self) -> list[int]:
        """All of the worker; its keeper, below whom its orphans gather, does not count."""
        return [process for process in watch.tree(self._keeper_pid) if process != self._keeper_pid]

    def _gone(self, wait_s: float) -> bool:
        """Whether the keeper has ended, which it does last of all."""
        return self._keeper is None or readable(self._keeper, wait_s)

    def _hear(self) -> tuple[bytes, list[int]]:
        assert self._leash is not None, "a leash is held"
        if not readable(self._leash.fileno(), START_S):
            raise StartError(f"the worker was not confined within {START_S:g} s")
        said, received, _, _ = socket.recv_fds(self._leash, 64, 1, socket.MSG_CMSG_CLOEXEC)
        return said, received


class Leashed:
    """The end of a worker, as its keeper tells it."""

    def __init__(self, leash: socket.socket, keeper: int) -> None:
        self._leash, self._keeper = leash, keeper
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return how the worker ended, if all its processes have."""
        if self._status is None and readable(self._leash.fileno(), 0.0):
            said = self._leash.recv(64)
            self._status = int(said.removeprefix(ENDED)) if said.startswith(ENDED) else SIGNALLED
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the keeper's word; a keeper that does not come to an end is ended."""
        deadline = time.monotonic() + (GONE_S if timeout is None else timeout)
        while (status := self.poll()) is None:
            left_s = deadline - time.monotonic()
            if left_s > 0:
                readable(self._leash.fileno(), left_s)
            elif timeout is not None:
                raise subprocess.TimeoutExpired("worker", timeout)
            else:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._keeper, signal.SIGKILL)
                self._status = SIGNALLED
        return status
