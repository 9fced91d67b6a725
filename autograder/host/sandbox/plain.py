"""Level 5: an ordinary process of the same user. It limits accidents, not attacks."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.interpreter import environment, interpreter_arguments, rlimits
from autograder.host.sandbox.levels import NOT_ENFORCED, PROMISES, Level
from autograder.host.sandbox.process import Enclosure, WorkerProcess, start_process
from autograder.host.sandbox.resource_limits import Limits
from autograder.host.sandbox.resources import Resources, folder, process_memory
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.zygote import ForkedWorker, Zygote, ZygotePool, make_course, start_unmounted
from autograder.protocol.orders import Orders


class Plain(Sandbox):
    """No isolation: for machines without bubblewrap, and only for code that you trust."""

    level = Level.NONE
    _notes = (f"no isolation: {PROMISES[Level.NONE].keeps_out}", NOT_ENFORCED)

    def __init__(self, device: Device = CPU) -> None:
        self._device = device
        # Only Linux can fork from a zygote; elsewhere each worker starts cold.
        self.zygotes = _zygotes(device) if sys.platform == "linux" else None

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        private = folder.make()
        try:
            root = folder.link_course(private, masked)
        except BaseException:
            folder.remove(private)
            raise

        def command(channel: socket.socket) -> list[str]:
            # Without a limit on processes: it would count all that this user runs.
            numbers = rlimits(limits, processes=None, device=self._device)
            arguments = interpreter_arguments(program, numbers, channel=channel.fileno(), path=str(root))
            return [sys.executable, *arguments]

        return WorkerProcess(_Session(command, private, limits.memory_bytes, self._variables(private)), limits)

    def _fork(self, zygotes: ZygotePool, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        private = folder.make()
        resources = Resources(private=private)
        try:
            root = str(folder.link_course(private, masked))
            numbers = rlimits(limits, processes=None, device=self._device)
            variables = self._variables(private)
            orders = Orders(program, root, str(private), variables, numbers, seccomp=b"", confined=False)
        except BaseException:
            resources.release()
            raise
        return WorkerProcess(ForkedWorker(zygotes.fork, orders, limits, resources), limits)

    def _zygote(self, *, preload: bool) -> Zygote:
        return start_unmounted(_course(), preload=preload, device=self._device)

    def _variables(self, home: Path) -> dict[str, str]:
        return environment(str(home), self._device, alone=False)  # nothing closes the other GPUs


@cache
def _zygotes(device: Device) -> ZygotePool:
    return ZygotePool(lambda: start_unmounted(_course(), preload=True, device=device))


@cache
def _course() -> Path:
    return make_course()


class _Session(Enclosure):
    """A worker in a session and a temporary folder of its own; a process that leaves the session escapes."""

    tick_s = 0.025

    def __init__(
        self, command: Callable[[socket.socket], list[str]], private: Path, memory_bytes: int, variables: dict[str, str]
    ) -> None:
        self._command, self._private, self._memory_bytes = command, private, memory_bytes
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, channel: socket.socket, output: int) -> subprocess.Popen[bytes]:
        """Start the interpreter in its own session."""
        command, fds = self._command(channel), (channel.fileno(),)
        self._process = start_process(command, output, fds, self._variables, self._private)
        return self._process

    def out_of_memory(self) -> str:
        """Count the memory of the processes below the worker."""
        if self._process is None or self._process.poll() is not None:
            return ""
        return process_memory.excess(list(process_memory.tree(self._process.pid)), self._memory_bytes)

    def kill(self) -> None:
        """Kill all processes of the session."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Remove the temporary folder."""
        folder.remove(self._private)
