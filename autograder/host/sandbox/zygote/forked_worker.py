"""One worker forked by a zygote: it is limited before it runs, and its keeper or the end of its namespace ends it."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable

from autograder.host.sandbox.process import Enclosure, StartError, process_of, readable
from autograder.host.sandbox.resource_limits import MIB, Limits
from autograder.host.sandbox.resources import Resources, folder, process_memory
from autograder.protocol.orders import Orders

GO, STARTED, ENDED = b"go", b"started", b"ended "
START_S, END_S = 20.0, 15.0
SIGNALLED = -9


class ForkedWorker(Enclosure):
    """A worker below a keeper; the host holds one end of the keeper's lifeline."""

    def __init__(
        self, fork: Callable[[int, int, bytes, int], int], orders: Orders, limits: Limits, resources: Resources
    ) -> None:
        self._fork, self._orders, self._limits, self._resources = fork, orders, limits, resources
        self._keeper: int | None = None  # pidfds, and below them the process ids
        self._worker: int | None = None
        self._keeper_pid = self._first_pid = 0
        self._lifeline: socket.socket | None = None
        self.tick_s = 0.1 if resources.group else 0.025

    def spawn(self, channel: socket.socket, output: int) -> "KeptProcess":
        """Fork the keeper, limit it, and only then let it start the worker."""
        self._lifeline, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._keeper = self._fork(channel.fileno(), output, self._orders.to_json(), theirs.fileno())
        try:
            self._keeper_pid = process_of(self._keeper)
            if self._resources.group:
                self._resources.group.add(self._keeper_pid)
            self._lifeline.send(GO)
            said, received = self._receive()
            self._worker = received[0] if received else None
            if said != STARTED or self._worker is None:
                raise StartError("the worker could not confine itself")
            with contextlib.suppress(ProcessLookupError):  # it may have ended already
                self._first_pid = process_of(self._worker)
        except OSError as error:
            raise StartError(f"its keeper cannot be limited ({error})") from error
        return KeptProcess(self._lifeline, self._keeper)

    def explain(self, printed: str) -> str:
        """Return the last line of the output, which names the step that failed."""
        return f"A worker could not be forked ({(printed.splitlines() or ['no reason given'])[-1]})."

    def out_of_memory(self) -> str:
        """Ask the control group; without one, count the memory of all processes."""
        allowed = self._limits.memory_bytes
        if self._resources.group:
            return f"used all of its {allowed / MIB:.0f} MB of memory" if self._resources.group.oom_kills() else ""
        return (
            "" if self._has_ended(0.0) else process_memory.excess(self._processes(), allowed, tmpfs_of=self._first_pid)
        )

    def misuse(self) -> str:
        """Count the files in the worker's private folder, which no kernel limit covers."""
        if self._resources.private is None or self._has_ended(0.0):
            return ""
        return folder.excess(self._resources.private, self._processes(), self._limits.tmp_bytes)

    def kill(self) -> None:
        """Kill the worker; its namespace ends with it, or its keeper kills the remaining processes."""
        if self._worker is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._worker, signal.SIGKILL)
        if self._resources.group:
            self._resources.group.kill()

    def exit_code(self, status: int) -> int:
        """Translate the status of a namespace's first process, which reports a signal as 128 plus its number."""
        return 128 - status if self._orders.mounts and status > 128 else status

    def close(self) -> None:
        """Close the lifeline, wait for the last process, then release the resources."""
        if self._lifeline is not None:
            self._lifeline.close()
        self._has_ended(END_S)
        for pidfd in (self._keeper, self._worker):
            if pidfd is not None:
                os.close(pidfd)
        self._keeper = self._worker = None
        self._resources.release()

    def _processes(self) -> list[int]:
        """Return the worker's processes; the keeper, which adopts its orphans, does not count."""
        return [process for process in process_memory.tree(self._keeper_pid) if process != self._keeper_pid]

    def _has_ended(self, wait_s: float) -> bool:
        """Tell whether the keeper has ended; it ends last of all."""
        return self._keeper is None or readable(self._keeper, wait_s)

    def _receive(self) -> tuple[bytes, list[int]]:
        assert self._lifeline is not None, "a lifeline is held"
        if not readable(self._lifeline.fileno(), START_S):
            raise StartError(f"the worker was not confined within {START_S:g} s")
        said, received, _, _ = socket.recv_fds(self._lifeline, 64, 1, socket.MSG_CMSG_CLOEXEC)
        return said, received


class KeptProcess:
    """The worker's process, as its keeper reports it."""

    def __init__(self, lifeline: socket.socket, keeper: int) -> None:
        self._lifeline, self._keeper = lifeline, keeper
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit code once all processes of the worker have ended."""
        if self._status is None and readable(self._lifeline.fileno(), 0.0):
            said = self._lifeline.recv(64)
            self._status = int(said.removeprefix(ENDED)) if said.startswith(ENDED) else SIGNALLED
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the keeper's report; kill a keeper that does not end."""
        deadline = time.monotonic() + (END_S if timeout is None else timeout)
        while (status := self.poll()) is None:
            left_s = deadline - time.monotonic()
            if left_s > 0:
                readable(self._lifeline.fileno(), left_s)
            elif timeout is not None:
                raise subprocess.TimeoutExpired("worker", timeout)
            else:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._keeper, signal.SIGKILL)
                self._status = SIGNALLED
        return status
