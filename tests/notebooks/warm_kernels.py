"""Starts the kernels of all notebooks from one process that has imported what their set-up cells import.

Each kernel is a process of its own that begins as `python -m ipykernel_launcher` begins, with its own environment,
folder and session; it has only less to import, practice in it has a sandbox that was probed and a zygote to share,
Dynamo does not time its guards, which no notebook shows, and a speed that other programs disturb is not measured again.
Run as a program, this file is that process. All processes of a test run share it, since it imports for twelve seconds:
it listens on a socket, and forks a kernel for every message on a connection, until all connections are closed.
"""

import ast
import atexit
import fcntl
import gc
import importlib
import json
import math
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

COURSE = Path(__file__).parents[2]
READY = b"ready"
START_S = 300.0
WORK = ("graphs", "lowering")
"""What workers do for exercises that takes long to import."""
WITHOUT_GPU = "No CUDA runtime is found"
"""In a line that a CUDA build of torch prints on a machine with nvcc and without a GPU."""


@contextmanager
def warm_kernels(place: Path) -> "Iterator[WarmKernels]":
    """Connect to the process that kernels are forked from; start it if none serves in the folder `place`.

    It ends with its last connection. What set-up cells import must print nothing.
    """
    folder = os.open(place, os.O_DIRECTORY)
    name = f"/proc/self/fd/{folder}/kernels"  # a socket's name may have 107 bytes, and `place` may have more
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control, tempfile.TemporaryFile() as said:
        control.settimeout(START_S)
        with (place / "kernels.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                control.connect(name)
            except OSError:
                _start(name, said)
                control.connect(name)
        os.close(folder)
        answer = control.recv(64)
        said.seek(0)
        lines = [line for line in said.read().decode().splitlines() if WITHOUT_GPU not in line]
        assert (answer, lines) == (READY, [])
        yield WarmKernels(control)


def _start(name: str, said: IO[bytes]) -> None:
    """Start the process, which listens on the socket `name` and prints to `said`."""
    # Left to itself, ipykernel sets the latter before anything can import matplotlib, which then reads it.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    Path(name).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(name)
        listening.listen()
        subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=environment,
            pass_fds=(listening.fileno(),),
        )


@dataclass(frozen=True)
class WarmKernels:
    """The process that kernels are forked from, as a test sees it."""

    control: socket.socket

    def launch(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str, **_: object) -> "Kernel":
        """Stand for `launch_kernel` of jupyter_client."""
        order = {"command": command, "environment": dict(env), "folder": cwd}
        self.control.send(json.dumps(order).encode())
        number, (pidfd,), _, _ = socket.recv_fds(self.control, 64, 1, socket.MSG_CMSG_CLOEXEC)
        return Kernel(int(number), pidfd)


class Kernel:
    """A forked kernel, with what jupyter_client asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid, self._pidfd = pid, pidfd

    def poll(self) -> int | None:
        """Return 0 once it has ended; how it ended, only its parent knows."""
        return 0 if select.select([self._pidfd], [], [], 0)[0] else None

    def wait(self) -> int:
        """Wait for its end."""
        select.select([self._pidfd], [], [])
        os.close(self._pidfd)
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal, to nobody else if it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)


def import_all() -> None:
    """Import what kernels need, and start what they share."""
    gc.disable()  # while it imports: all of that stays
    import ipykernel.kernelapp  # noqa: F401

    from autograder.host.clock import contest
    from autograder.practice import visible_checks
    from autograder.worker.untimed_guards import leave_guards_untimed
    from autograder.worker.zygote.zygote import PRELOADS, leave_torch_loaded
    from tests.early_backward import count_devices_early

    count_devices_early()
    contest.SCATTERED = math.inf  # beside other tests, times do not become steady by more pairs
    for name in (*set_up_imports(), *(name for work in WORK for name in PRELOADS[work.encode()])):
        importlib.import_module(name)
    sandbox = visible_checks._sandbox()
    sandbox.expect(*WORK)
    if sandbox.zygotes is not None:
        sandbox.zygotes.warm()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread would be lost in a fork"
    leave_guards_untimed()
    leave_torch_loaded()
    gc.collect()
    gc.freeze()
    gc.enable()


def serve(listening: socket.socket) -> None:
    """Fork a kernel for every message, until the last connection is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a kernel has ended
    connections: list[socket.socket] = []
    while True:
        for ready in select.select([listening, *connections], [], [])[0]:
            if ready is listening:
                connections.append(listening.accept()[0])
                with suppress(OSError):  # a test process may have been ended meanwhile
                    connections[-1].send(READY)
            elif order := ready.recv(1 << 20):
                if os.fork() == 0:
                    for each in (listening, *connections):
                        if each is not ready:
                            each.close()
                    become_kernel(ready, **json.loads(order))
                    atexit._run_exitfuncs()
                    os._exit(0)  # instead of taking all that was imported apart, page by page
            else:
                connections.remove(ready)
                ready.close()
                if not connections:
                    os._exit(0)


def set_up_imports() -> Iterator[str]:
    """The modules that the set-up cells of all notebooks import."""
    for path in sorted((COURSE / "notebooks").glob("*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if "setup" in cell["metadata"].get("tags", []):
                statements = ast.parse("".join(cell["source"])).body
                yield from (str(each.module) for each in statements if isinstance(each, ast.ImportFrom))
                yield from (alias.name for each in statements if isinstance(each, ast.Import) for alias in each.names)


def become_kernel(control: socket.socket, command: list[str], environment: dict[str, str], folder: str) -> None:
    """Be what `command`, `python -m` with a module and its arguments, would start."""
    os.setsid()
    socket.send_fds(control, [str(os.getpid()).encode()], [os.pidfd_open(os.getpid())])
    control.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = command[command.index("-m") + 1 :]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path[0] = str(COURSE)
    import_all()
    serve(socket.socket(fileno=int(sys.argv[1])))
