"""The process between zygote and worker: sets the worker up, ends all that it started, and says how it ended.

It is ours to its end: no student's byte reaches it, and at levels with namespaces the worker cannot even see it. The
host holds the other end of its ``leash``: letting go of it, by intent or by dying, ends the job.
"""

from __future__ import annotations

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
from autograder.worker.confinement.confine import keep_only

GO, STARTED, FAILED, ENDED = b"go", b"started", b"failed", b"ended "
CONFINED = b"c"
# Just below the throw-away users, and nobody's, as they are: the killer of one job may kill that of another, who then
# tries again, but no process that is not ours.
KILLERS_UID = 60_799
BREATH_S = 0.2
"""How often orphans are buried while the worker runs."""


@dataclass(frozen=True)
class Job:
    """The descriptors of one job."""

    channel: int
    output: int
    orders: int
    leash: int


def keep(job: Job) -> NoReturn:
    """Run one job to its end; never returns."""
    try:
        leash = socket.socket(fileno=job.leash)
        # Before anything runs, the host puts this process, and so all that follow, where they are limited.
        if leash.recv(len(GO)) == GO:
            _keep(job, leash)
    except BaseException:
        _print_to(job.output)
    os._exit(0)


def _keep(job: Job, leash: socket.socket) -> None:
    os.setsid()
    with os.fdopen(job.orders) as file:
        orders = Orders.from_json(file.read())
    if orders.mounts:
        namespaces.leave_the_zygotes(orders.mounts)
    else:
        # The orphans of the worker become children of this process, wherever they hide.
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    hears, tells = os.pipe()
    worker = os.fork()
    if worker == 0:
        leash.close()
        os.close(hears)
        _become_the_worker(job, orders, tells)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pidfd = os.pidfd_open(worker)
    for descriptor in (tells, job.channel, job.output):
        os.close(descriptor)
    confined = os.read(hears, 1) == CONFINED
    os.close(hears)
    socket.send_fds(leash, [STARTED if confined else FAILED], [pidfd])
    code = _until_the_end(worker, pidfd, orders.uid, leash)
    if not orders.mounts:
        _end_all_others(orders.uid)
    with suppress(OSError):
        leash.send(ENDED + str(code).encode())


def _until_the_end(worker: int, pidfd: int, uid: int | None, leash: socket.socket) -> int:
    """Wait for the worker, which ends when the host lets go; return its exit code, negative for a signal."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(leash, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(BREATH_S * 1000)]
        if leash.fileno() in ready:  # the host says nothing more, so this is the end of the stream
            with suppress(ProcessLookupError):
                _kill(pidfd, uid)
            poll.unregister(leash)
        while True:
            dead, status = os.waitpid(-1, os.WNOHANG)
            if dead == worker:
                return os.waitstatus_to_exitcode(status)
            if dead == 0:
                break


def _kill(pidfd: int, uid: int | None) -> None:
    """Kill the worker; root that may not signal other users' processes does it as the worker's user."""
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


def _end_all_others(uid: int | None) -> None:
    """Kill what the worker has left behind until this process has no descendant any more."""
    with suppress(ChildProcessError):
        while True:
            if uid is None:
                _kill_descendants(os.getpid())
            else:
                _kill_all_of(uid)
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
            time.sleep(0.001)  # what was killed takes a moment to die


def _kill_all_of(uid: int) -> None:
    """Kill every process of a throw-away user in one stroke, which no fork escapes."""
    killer = os.fork()
    if killer == 0:
        with suppress(OSError):
            # May signal them, for that depends on the effective user, and cannot be stopped by them, for that depends
            # on the real and the saved one.
            os.setresuid(KILLERS_UID, uid, KILLERS_UID)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.waitpid(killer, 0)


def _kill_descendants(process: int) -> None:
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                # First the parent: what it starts before it dies becomes a child of this process, for the next round.
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
                _kill_descendants(child)


def _become_the_worker(job: Job, orders: Orders, tells: int) -> NoReturn:
    """Confine this process and run the program; with namespaces, as the second process of its own."""
    try:
        (tells,) = keep_only(job.channel, job.output, tells)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        confine(orders)
        if orders.mounts:
            _become_the_second_process(tells)
        else:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # the change of user has undone it
        os.setsid()
        os.write(tells, CONFINED)
        os.close(tells)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    _run(orders)


def _become_the_second_process(tells: int) -> None:
    """Fork: the first process stays behind to bury orphans, as weak as the worker and closed to it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    second = os.fork()
    if second == 0:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the only signal that Python does something about
    os.closerange(0, tells + 1)
    while True:
        dead, status = os.waitpid(-1, 0)
        if dead == second:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _run(orders: Orders) -> NoReturn:
    """Run the program as a fresh interpreter would, up to and including what it does at its exit."""
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
