"""One running worker: its channel, its output, and the thread that ends it at a limit."""

import contextlib
import os
import re
import select
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.resource_limits import KIB, MIB, Ending, Limits, Reason

OUTPUT_DRAINED_BYTES = 32 * MIB


class StartError(Exception):
    """The enclosure could not be built; the output of its program gives the cause."""


class Running(Protocol):
    """The process that ends when the worker ends, such as a `subprocess.Popen`."""

    def poll(self) -> int | None:
        """Return the exit status if the process has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raise `subprocess.TimeoutExpired`."""


class Enclosure(ABC):
    """Manage the processes of one worker together: start them, measure their use of resources, kill all of them."""

    tick_s: float = 0.1
    """Seconds between two calls of `out_of_memory`."""

    @abstractmethod
    def spawn(self, channel: socket.socket, output: int) -> Running:
        """Start the worker; it inherits `channel`, and its stdout and stderr go to `output`."""

    def explain(self, printed: str) -> str:
        """Return a sentence on why `spawn` failed, given the output of the failed start."""
        return f"The worker could not be started: {printed}."

    @abstractmethod
    def out_of_memory(self) -> str:
        """Return a sentence if the worker has used more memory than allowed, else ""."""

    def misuse(self) -> str:
        """Return a sentence if the worker exceeds another limit that is only watched, else ""."""
        return ""

    @abstractmethod
    def kill(self) -> None:
        """Kill every process of the worker; safe to repeat, to call late, and to call from any thread."""

    def exit_code(self, status: int) -> int:
        """Translate the status of the spawned process into the interpreter's exit code, negative for a signal."""
        return status

    @abstractmethod
    def close(self) -> None:
        """Wait until the last process has ended, then release its resources."""


class WorkerProcess:
    """A worker that runs or has ended; leaving the context kills it.

    >>> with sandbox.start(limits=Limits(wall_s=20)) as worker:
    ...     worker.socket.sendall(request)
    ...     ending = worker.end()
    """

    def __init__(self, enclosure: Enclosure, limits: Limits) -> None:
        self._enclosure = enclosure
        self._limits = limits
        self._kept = bytearray()
        self._printed_bytes = 0
        self._cause: tuple[Reason, str] | None = None
        self._ending: Ending | None = None
        self._failure: BaseException | None = None
        self._over = False
        """If True, no process is left to kill, and the enclosure's descriptors are being closed."""
        self._lock = threading.Lock()
        self._started = threading.Event()
        self.socket, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # bubblewrap ends with the thread that started it, so the thread that watches it also starts it.
        self._guard = threading.Thread(target=self._run, name="sandbox-guard", daemon=True)
        self._guard.start()
        self._started.wait()
        if self._failure is not None:
            self.socket.close()
            self._guard.join()
            raise self._failure

    def kill(self) -> None:
        """Kill all processes of the worker at once; does nothing if they have ended."""
        self._stop("killed", "ended by the host")

    def end(self, *, grace_s: float = 1.0) -> Ending:
        """Close the channel, wait `grace_s` seconds for the worker to end, kill it otherwise, and return its ending."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self._guard.join(grace_s)
        if self._guard.is_alive():
            self.kill()
            self._guard.join()
        assert self._ending is not None
        return self._ending

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(grace_s=0.0)

    def _stop(self, reason: Reason, detail: str) -> None:
        with self._lock:
            if not self._over:
                self._cause = self._cause or (reason, detail)
                self._enclosure.kill()

    def _run(self) -> None:
        deadline = time.monotonic() + self._limits.wall_s
        output, theirs = os.pipe()
        os.set_blocking(output, False)
        try:
            process = self._enclosure.spawn(self._theirs, theirs)
        except BaseException as error:
            self._failure = self._explain(error, output)
            self._enclosure.close()
            os.close(output)
            return
        finally:
            os.close(theirs)
            self._theirs.close()
            self._started.set()
        try:
            self._watch(process, output, deadline)
        finally:
            self._finish(process, output)

    def _explain(self, error: BaseException, output: int) -> BaseException:
        """Return the exception that `start` raises; a failed start becomes a `SandboxError` with its output."""
        if not isinstance(error, StartError | OSError):
            return error
        self._drain(output)
        return SandboxError(self._enclosure.explain(self._kept.decode(errors="replace").strip() or str(error)))

    def _watch(self, process: Running, output: int, deadline: float) -> None:
        """Wait until the process has ended; stop it at a limit."""
        poll = select.poll()
        poll.register(output, select.POLLIN)
        next_look, can_print = 0.0, True
        while process.poll() is None:
            now = time.monotonic()
            if now >= deadline:
                self._stop("timed_out", f"ran longer than {self._limits.wall_s:g} s")
            if now >= next_look:
                next_look = now + self._enclosure.tick_s
                if detail := self._enclosure.out_of_memory():
                    self._stop("out_of_memory", detail)
                elif detail := self._enclosure.misuse():
                    self._stop("killed", detail)
            wait_s = max(0.0, min(deadline, next_look) - now) if now < deadline else self._enclosure.tick_s
            if not can_print:
                # The output is closed: usually all processes have ended, and the status follows shortly.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(wait_s)
            elif poll.poll(wait_s * 1000):
                can_print = self._drain(output)

    def _drain(self, output: int) -> bool:
        """Read the available output and keep its beginning; return False at the end of the stream."""
        try:
            data = os.read(output, 256 * KIB)
        except BlockingIOError:
            return True
        self._printed_bytes += len(data)
        self._kept += data[: max(0, self._limits.output_bytes - len(self._kept))]
        if self._printed_bytes > OUTPUT_DRAINED_BYTES:
            self._stop("killed", f"printed more than {OUTPUT_DRAINED_BYTES // MIB} MB")
            return False  # an output that is no longer read blocks the writer until it is killed
        return bool(data)

    def _finish(self, process: Running, output: int) -> None:
        """Kill the remaining processes, read the rest of the output, and record the ending."""
        self._enclosure.kill()
        status = process.wait()
        late_oom = self._enclosure.out_of_memory()
        with self._lock:
            self._over = True
        self._enclosure.close()
        while self._printed_bytes <= OUTPUT_DRAINED_BYTES:
            before = self._printed_bytes
            if not self._drain(output) or self._printed_bytes == before:
                break
        os.close(output)
        self._ending = self._describe(self._enclosure.exit_code(status), late_oom)

    def _describe(self, code: int, late_oom: str) -> Ending:
        text = self._kept.decode(errors="replace")
        if self._cause is not None:
            reason, detail = self._cause
            return Ending(reason, None, text, detail)
        if late_oom:
            return Ending("out_of_memory", None, text, late_oom)
        if code < 0:
            return Ending("killed", code, text, f"ended by signal {-code}")
        return Ending("exited", code, text)


def readable(descriptor: int, wait_s: float) -> bool:
    """Tell whether `descriptor` becomes readable within `wait_s` seconds; a pidfd does when its process ends."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def start_process(
    command: Sequence[str], output: int, fds: Sequence[int], variables: Mapping[str, str], cwd: str | Path = "/"
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, with these variables only and nothing to read; it inherits `fds`."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=variables,
        cwd=cwd,
        pass_fds=fds,
        start_new_session=True,
    )


def in_memory(content: bytes) -> int:
    """Return a descriptor from which a child reads `content`."""
    descriptor = os.memfd_create("sandbox")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def process_of(pidfd: int) -> int:
    """Return the process id behind a pidfd, as this process sees it; raise `ProcessLookupError` if it has ended."""
    match = re.search(r"^Pid:\s+(-?\d+)$", Path(f"/proc/self/fdinfo/{pidfd}").read_text(), re.MULTILINE)
    if match is None or int(match[1]) <= 0:
        raise ProcessLookupError("the process has ended")
    return int(match[1])
