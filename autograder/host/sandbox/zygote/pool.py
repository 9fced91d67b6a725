"""Running zygotes: start one, ask it for workers, and replace it before workers learn much about its address layout."""

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.interpreter import ZYGOTE, interpreter_arguments, zygote_environment
from autograder.host.sandbox.process import StartError, in_memory, readable, start_process
from autograder.host.sandbox.resources import folder

READY, KEPT, CONNECT = b"ready", b"kept", b"connect"
START_S, ANSWER_S = 60.0, 20.0
JOBS = 90
"""Workers of one zygote; it is then replaced, since its children share its address layout."""


class Zygote:
    """One running zygote; `spawn` starts it with one end of a socket and a descriptor for its error output."""

    def __init__(self, spawn: Callable[[socket.socket, int], subprocess.Popen[bytes]]) -> None:
        self.jobs = 0
        self.imported: set[str] = set()
        self.host = os.getpid()
        self._complaints = in_memory(b"")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.process = spawn(theirs, self._complaints)
            self._expect(READY, START_S)
        except BaseException:
            self.retire()
            raise

    def fork(self, channel: int, output: int, orders: bytes, lifeline: int) -> int:
        """Fork a worker; return a pidfd of its keeper, which waits at the other end of `lifeline`."""
        self.jobs += 1
        descriptor = in_memory(orders)
        try:
            socket.send_fds(self._control, [b"job"], [channel, output, descriptor, lifeline])
        except OSError as error:
            raise self._ended(error) from error
        finally:
            os.close(descriptor)
        (pidfd,) = self._expect(KEPT, ANSWER_S, descriptors=1)
        return pidfd

    def import_for(self, work: str) -> None:
        """Let it import the modules that `work` needs besides torch; `autograder.worker.zygote.zygote` lists them."""
        try:
            self._control.send(work.encode())
        except OSError as error:
            raise self._ended(error) from error
        self._expect(READY, START_S)
        self.imported.add(work)

    def connect_again(self) -> None:
        """Give a forked host a socket of its own: two hosts on one socket would mix up their answers."""
        with self._control as inherited:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                try:
                    socket.send_fds(inherited, [CONNECT], [theirs.fileno()])  # the answer comes on the new socket
                except OSError as error:
                    raise self._ended(error) from error
        self._expect(READY, START_S)
        self.host = os.getpid()

    def retire(self) -> None:
        """Accept no more jobs; the process ends with its last job."""
        self._control.close()
        with contextlib.suppress(OSError):
            os.close(self._complaints)

    def _expect(self, answer: bytes, patience_s: float, *, descriptors: int = 0) -> list[int]:
        if not readable(self._control.fileno(), patience_s):
            raise StartError(f"the zygote did not answer within {patience_s:g} s")
        try:
            said, received, _, _ = socket.recv_fds(self._control, 256, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            said, received = b"", []
        if said != answer or len(received) != descriptors:
            raise StartError(said.decode(errors="replace") or f"the zygote ended. {self._said()}".strip())
        return received

    def _ended(self, error: OSError) -> StartError:
        return StartError(f"the zygote has ended ({error.strerror}). {self._said()}".strip())

    def _said(self) -> str:
        lines = Path(f"/proc/self/fd/{self._complaints}").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class ZygotePool:
    """Keep one zygote running: start it at the first job, replace it when it is used up or has died."""

    def __init__(self, start: Callable[[], Zygote], jobs: int | None = None) -> None:
        self._start, self._jobs = start, jobs or JOBS
        self._lock = threading.Lock()
        self._current: Zygote | None = None
        self._retired: list[subprocess.Popen[bytes]] = []
        self._wanted: list[str] = []
        atexit.register(self.close)

    def fork(self, channel: int, output: int, orders: bytes, lifeline: int) -> int:
        """Fork a worker, see `Zygote.fork`; if the zygote has died, replace it and try once more."""
        with self._lock:
            self._retired = [process for process in self._retired if process.poll() is None]
            served = self._current is not None
            try:
                return self._ready().fork(channel, output, orders, lifeline)
            except StartError:
                self._retire()
                if not served:
                    raise
                return self._ready().fork(channel, output, orders, lifeline)

    def want(self, *work: str) -> None:
        """Import the modules for such work in the zygote, instead of in each worker, from the next job on."""
        with self._lock:
            self._wanted += [each for each in work if each not in self._wanted]

    def warm(self) -> None:
        """Start the zygote now instead of at the first job."""
        with self._lock:
            self._ready()

    def close(self, *, patience_s: float = 2.0) -> None:
        """Retire all zygotes and wait `patience_s` seconds for those without jobs to end."""
        with self._lock:
            self._retire()
            deadline = time.monotonic() + patience_s
            for process in self._retired:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))

    def _ready(self) -> Zygote:
        zygote = self._current
        if zygote is not None and zygote.jobs >= self._jobs:
            self._retire()
            zygote = None
        if zygote is not None and zygote.host != os.getpid():
            zygote.connect_again()
        if zygote is None:
            zygote = self._current = self._start()
        for work in self._wanted:
            if work not in zygote.imported:
                zygote.import_for(work)
        return zygote

    def _retire(self) -> None:
        zygote, self._current = self._current, None
        if zygote is not None:
            zygote.retire()
            if zygote.host == os.getpid():
                self._retired.append(zygote.process)


def make_course() -> Path:
    """Return a folder with the code that a zygote of levels 3 to 5 imports; it is removed when the host ends.

    It contains nothing of course_lib, since each job masks different parts of it.
    """
    private = folder.make()
    private.chmod(0o755)
    root = folder.link_course(private, ())
    (root / "course_lib").unlink()
    atexit.register(folder.remove, private)
    return root


def start_unmounted(course: Path, *, preload: bool, device: Device = CPU) -> Zygote:
    """Start the zygote of levels 3 to 5: a process of this user that imports from `course`; see `Sandbox._zygote`."""
    program = ZYGOTE.format(preload=preload)

    def spawn(control: socket.socket, complaints: int) -> subprocess.Popen[bytes]:
        arguments = interpreter_arguments(program, {"RLIMIT_CORE": 0}, channel=control.fileno(), path=str(course))
        command = [sys.executable, *arguments]
        return start_process(command, complaints, (control.fileno(),), zygote_environment("/", device))

    return Zygote(spawn)
