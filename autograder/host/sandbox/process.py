"""One running worker: its channel, what it prints, and the thread that ends it when a limit is reached."""

import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Protocol, Self

from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.limits import KIB, MIB, Ending, Limits, Reason

OUTPUT_DRAINED_BYTES = 32 * MIB


class StartError(Exception):
    """The enclosure could not be built; what the program for it printed tells why."""


class Running(Protocol):
    """The process whose end is the worker's, however it was started; `subprocess.Popen` is one."""

    def poll(self) -> int | None:
        """Return its status if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired."""


class Enclosure(ABC):
    """What holds one worker's processes together: starts them, sees what they use, ends all of them."""

    tick_s: float = 0.1
    """How often `out_of_memory` is asked."""

    @abstractmethod
    def spawn(self, channel: socket.socket, output: int) -> Running:
        """Start the worker with `channel` inherited and stdout and stderr going to `output`."""

    def explain(self, printed: str) -> str:
        """Return a sentence on why `spawn` failed, from what was printed meanwhile."""
        return f"The worker could not be started: {printed}."

    @abstractmethod
    def out_of_memory(self) -> str:
        """Return a sentence if the worker has used more memory than it may, "" if not."""

    def misuse(self) -> str:
        """Return a sentence if the worker has used more than it may of something else that is only watched."""
        return ""

    @abstractmethod
    def kill(self) -> None:
        """Kill every process of the worker; harmless when repeated or too late, from any thread."""

    @abstractmethod
    def exit_code(self, status: int) -> int:
        """Translate the status of the process that was spawned into the interpreter's, negative for a signal."""

    @abstractmethod
    def close(self) -> None:
        """Wait until the last process has gone and give back what was resources for it."""


class WorkerProcess:
    """A worker that is running, or has ended; leaving the context kills it.

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
        """From here on nothing is left to kill, and the enclosure's handles are being given back."""
        self._lock = threading.Lock()
        self._started = threading.Event()
        self.socket, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # bubblewrap dies with the thread that started it, so that is the thread which guards it to its end.
        self._guard = threading.Thread(target=self._run, name="sandbox-guard", daemon=True)
        self._guard.start()
        self._started.wait()
        if self._failure is not None:
            self.socket.close()
            self._guard.join()
            raise self._failure

    def kill(self) -> None:
        """Kill all processes of the worker at once; harmless if they have ended."""
        self._stop("killed", "ended by the host")

    def end(self, *, grace_s: float = 1.0) -> Ending:
        """Close the channel, let the worker go within `grace_s` seconds, kill what is left, and say how it ended."""
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
        """Return what `start` raises: a sentence, with what was printed if the enclosure could not be built."""
        if not isinstance(error, StartError | OSError):
            return error
        self._drain(output)
        return SandboxError(self._enclosure.explain(self._kept.decode(errors="replace").strip() or str(error)))

    def _watch(self, process: Running, output: int, deadline: float) -> None:
        """Return when the process has ended, having seen to it that it does."""
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
                # Usually because all are dead, which shows a moment later.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(wait_s)
            elif poll.poll(wait_s * 1000):
                can_print = self._drain(output)

    def _drain(self, output: int) -> bool:
        """Read what is there, keep the beginning of it; False at the end of the stream."""
        try:
            data = os.read(output, 256 * KIB)
        except BlockingIOError:
            return True
        self._printed_bytes += len(data)
        self._kept += data[: max(0, self._limits.output_bytes - len(self._kept))]
        if self._printed_bytes > OUTPUT_DRAINED_BYTES:
            self._stop("killed", f"printed more than {OUTPUT_DRAINED_BYTES // MIB} MB")
            return False  # what nobody drains cannot be printed, should its end take a moment
        return bool(data)

    def _finish(self, process: Running, output: int) -> None:
        """Kill what the first process left behind, read the rest, and write the ending."""
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
