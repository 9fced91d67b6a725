"""The process between zygote and worker: it starts the worker, kills remaining processes, and reports the end.

The keeper is trusted: it reads no data of a student, and in namespaces the worker cannot see it. The host holds the
other end of its `lifeline`. When the host closes that end or dies, the job ends.
"""

import atexit
import importlib
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from autograder.protocol.orders import Orders
from autograder.worker.confinement import confine, kernel, namespaces
from autograder.worker.confinement.self_confinement import keep_descriptors

GO, STARTED, FAILED, ENDED = b"go", b"started", b"failed", b"ended "
CONFINED = b"c"
# An unused user id just below the throw-away users. Killers of two jobs may kill each other and then try again; they
# cannot kill processes of other users.
KILLER_UID = 60_799
POLL_S = 0.2
"""Seconds between two checks for ended children while the worker runs."""


@dataclass(frozen=True)
class Job:
    """The descriptors of one job."""

    channel: int
    output: int
    orders: int
    lifeline: int


def keep(job: Job) -> NoReturn:
    """Run one job to its end; never returns."""
    try:
        lifeline = socket.socket(fileno=job.lifeline)
        # The host first puts this process, and so all its later children, into its control group.
        if lifeline.recv(len(GO)) == GO:
            _keep(job, lifeline)
    except BaseException:
        _print_to(job.output)
    os._exit(0)


def _keep(job: Job, lifeline: socket.socket) -> None:
    os.setsid()
    with os.fdopen(job.orders) as file:
        orders = Orders.from_json(file.read())
    if orders.mounts:
        namespaces.leave_zygote_namespaces(orders.mounts)
    else:
        # Orphans of the worker become children of this process, in any session.
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    status_read, status_write = os.pipe()
    worker = os.fork()
    if worker == 0:
        lifeline.close()
        os.close(status_read)
        _become_worker(job, orders, status_write)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pidfd = os.pidfd_open(worker)
    for descriptor in (status_write, job.channel, job.output):
        os.close(descriptor)
    confined = os.read(status_read, 1) == CONFINED
    os.close(status_read)
    socket.send_fds(lifeline, [STARTED if confined else FAILED], [pidfd])
    code = _wait_for_worker(worker, pidfd, orders.uid, lifeline)
    if not orders.mounts:
        _kill_remaining(orders.uid)
    with suppress(OSError):
        lifeline.send(ENDED + str(code).encode())


def _wait_for_worker(worker: int, pidfd: int, uid: int | None, lifeline: socket.socket) -> int:
    """Wait for the worker, which is killed when the lifeline closes; return its exit code, negative for a signal."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(lifeline, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(POLL_S * 1000)]
        if lifeline.fileno() in ready:  # the host sends nothing more, so the lifeline was closed
            with suppress(ProcessLookupError):
                _kill(pidfd, uid)
            poll.unregister(lifeline)
        while True:
            dead, status = os.waitpid(-1, os.WNOHANG)
            if dead == worker:
                return os.waitstatus_to_exitcode(status)
            if dead == 0:
                break


def _kill(pidfd: int, uid: int | None) -> None:
    """Kill the worker; without the right to signal other users, root does it as the worker's user."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except PermissionError:
        if uid is None:
            raise
        os.seteuid(uid)
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.seteuid(0)


def _kill_remaining(uid: int | None) -> None:
    """Kill the processes that the worker has left, until this process has no descendants."""
    with suppress(ChildProcessError):
        while True:
            if uid is None:
                _kill_descendants(os.getpid())
            else:
                _kill_all_of(uid)
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
            time.sleep(0.001)  # a killed process needs a moment to end


def _kill_all_of(uid: int) -> None:
    """Kill all processes of a throw-away user in one call, which no fork escapes."""
    killer = os.fork()
    if killer == 0:
        with suppress(OSError):
            # Its effective user permits it to signal them; its real and saved user protect it from their signals.
            os.setresuid(KILLER_UID, uid, KILLER_UID)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.waitpid(killer, 0)


def _kill_descendants(process: int) -> None:
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                # The parent first: children that it still starts become children of this process, for the next round.
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
                _kill_descendants(child)


def _become_worker(job: Job, orders: Orders, status_write: int) -> NoReturn:
    """Confine this process and run the program; with namespaces, as the second process of the namespace."""
    try:
        (status_write,) = keep_descriptors(job.channel, job.output, status_write)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        confine(orders)
        if orders.mounts:
            _fork_below_init(status_write)
        else:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # the change of user has reset it
        os.setsid()
        os.write(status_write, CONFINED)
        os.close(status_write)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    _run(orders)


def _fork_below_init(status_write: int) -> None:
    """Fork; the namespace's first process remains to reap orphans. It is confined and protected from the worker."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    second = os.fork()
    if second == 0:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the only signal that Python handles
    os.closerange(0, status_write + 1)
    while True:
        dead, status = os.waitpid(-1, 0)
        if dead == second:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _run(orders: Orders) -> NoReturn:
    """Run the program as a new interpreter would, including its exit functions."""
    sys.path[0] = orders.path
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    sys.argv[:] = ["worker"]
    code = 0
    try:
        exec(compile(orders.program, "<worker>", "exec"), {"__name__": "__main__"})
    except SystemExit as exit_:
        code = _exit_code(exit_)
    except BaseException:
        traceback.print_exc()
        code = 1
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    with suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _print_to(output: int) -> None:
    with suppress(OSError):
        os.write(output, traceback.format_exc().encode())
