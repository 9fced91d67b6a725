"""Levels 1 and 2: bubblewrap, run by root with a throw-away user for each worker, or by an ordinary user.

A worker that is started cold has a bubblewrap of its own. The zygote has one too. It keeps the right to make
namespaces, and uses it only in the child that becomes a worker; see `autograder.worker.confinement`.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from autograder.host.sandbox import seccomp
from autograder.host.sandbox.bubblewrap_process import BubblewrapProcess
from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.descriptors import in_memory
from autograder.host.sandbox.interpreter import ZYGOTE, environment, interpreter_arguments, rlimits
from autograder.host.sandbox.levels import Level, SandboxError
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.resource_limits import Limits
from autograder.host.sandbox.resources import Hierarchy, Resources, ThrowawayUser
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.view import (
    COURSE,
    Bind,
    Cover,
    DeviceNode,
    Link,
    Mount,
    below_temporary,
    course,
    file_system,
    with_parents,
)
from autograder.host.sandbox.zygote import ForkedWorker, Zygote, ZygotePool
from autograder.protocol.orders import Mounts, Orders

NOBODY = 65_534
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
# What it takes to become the throw-away user and to give up everything else.
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


class Bubblewrap(Sandbox):
    """Start each worker in its own namespaces; a control group (level 1) or a watchdog (level 2) limits memory."""

    def __init__(self, hierarchy: Hierarchy | None, device: Device = CPU) -> None:
        self._bwrap = find_bubblewrap()
        self._hierarchy = hierarchy
        self._device = device
        self.level = Level.ISOLATED_AND_LIMITED if hierarchy else Level.ISOLATED
        who = "as root, a throw-away user for each worker" if _is_root() else "as an ordinary user"
        memory = f"limited by a control group (version {hierarchy.version})" if hierarchy else "watched, not limited"
        self._notes = (f"bubblewrap {who}", f"total memory is {memory}", *device.notes)
        self.zygotes = ZygotePool(lambda: self._zygote(preload=True))

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        mounts = [*file_system(masked), *self._device.mounts]
        options = [*_isolation(self._bwrap), *_files(mounts, limits), *_variables()]
        resources = self._resources(limits, spare=1)

        def command(channel: socket.socket) -> list[str]:
            numbers = rlimits(limits, processes=limits.processes)
            arguments = interpreter_arguments(program, numbers, channel=channel.fileno(), path=COURSE)
            return [*(_become(resources.user.uid) if resources.user else ()), sys.executable, *arguments]

        enclosure = BubblewrapProcess(self._bwrap, options, self._rules(), command, resources, limits.memory_bytes)
        return WorkerProcess(enclosure, limits)

    def _fork(self, zygotes: ZygotePool, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        mounts = Mounts(
            tmp_bytes=limits.tmp_bytes,
            shm_bytes=limits.shm_bytes,
            course=tuple(target for _, target in course(masked)) if masked else None,
            kept=tuple(below_temporary(file_system())),
            own_users=not _is_root(),
        )
        # Two processes are ours: the keeper, and the first process of the namespace.
        resources = self._resources(limits, spare=2)
        orders = Orders(
            program=program,
            path=COURSE,
            home="/tmp",
            variables=environment("/tmp"),
            rlimits=rlimits(limits, processes=limits.processes if _is_root() else limits.processes + 1),
            seccomp=self._rules(),
            uid=resources.user.uid if resources.user else None,
            mounts=mounts,
        )
        return WorkerProcess(ForkedWorker(zygotes.fork, orders, limits, resources), limits)

    def _zygote(self, *, preload: bool) -> Zygote:
        mounts = [*file_system(), *self._device.mounts]
        options = [*_isolation(self._bwrap, for_zygote=True), *_files(mounts, Limits()), *_variables()]
        program = ZYGOTE.format(preload=preload)

        def spawn(control: socket.socket, complaints: int) -> subprocess.Popen[bytes]:
            arguments = interpreter_arguments(program, {"RLIMIT_CORE": 0}, channel=control.fileno(), path=COURSE)
            given = in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
            try:
                return subprocess.Popen(
                    [self._bwrap, "--args", str(given), "--", sys.executable, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=complaints,
                    stderr=complaints,
                    env={},
                    cwd="/",
                    pass_fds=(control.fileno(), given),
                )
            finally:
                os.close(given)

        return Zygote(spawn)

    def _rules(self) -> bytes:
        return seccomp.program(countable_memory_only=self._hierarchy is None and not self._device.cuda)

    def _resources(self, limits: Limits, *, spare: int) -> Resources:
        """Take a user and a control group for one worker; `spare` counts our own processes in the group."""
        resources = Resources(user=ThrowawayUser() if _is_root() else None)
        try:
            resources.group = self._hierarchy.group(limits, spare=spare) if self._hierarchy else None
        except OSError as error:
            resources.release()
            raise SandboxError(f"A control group for the worker could not be made ({error}).") from error
        return resources


def find_bubblewrap() -> str:
    """Return the path of bubblewrap; raise `SandboxError` with the command that installs it."""
    place = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if place is None:
        raise SandboxError("bubblewrap is missing; install it with `apt-get install bubblewrap` (as root).")
    return place


def _is_root() -> bool:
    return os.geteuid() == 0


def _isolation(bwrap: str, *, for_zygote: bool = False) -> Iterator[str]:
    # The zygote ends with its socket instead: the thread that started it may end earlier.
    yield from ("--new-session", *_NAMESPACES, "--hostname", "sandbox", *(() if for_zygote else ("--die-with-parent",)))
    if _is_root():
        yield from ("--cap-drop", "ALL")
        for capability in (*_CAPABILITIES, *(("CAP_SYS_ADMIN",) if for_zygote else ())):
            yield from ("--cap-add", capability)
    else:
        yield from ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY))
        if "--disable-userns" in _help(bwrap) and not for_zygote:
            yield "--disable-userns"


def _files(mounts: Sequence[Mount], limits: Limits) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    for size, place in ((limits.tmp_bytes, "/tmp"), (limits.shm_bytes, "/dev/shm")):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", place)
    for mount, parents in with_parents(mounts):
        # Parents that bubblewrap makes by itself can be entered by root only.
        for parent in parents:
            yield from ("--dir", parent)
        match mount:
            case Bind(source, target):
                yield from ("--ro-bind", source, target)
            case DeviceNode(path):
                yield from ("--dev-bind", path, path)
            case Link(points_to, target):
                yield from ("--symlink", points_to, target)
            case Cover(target):
                yield from ("--tmpfs", target)
    # These are memory file systems, which a worker could fill; read-only is possible once all mounts are made.
    for place in ("/dev", *(mount.target for mount in mounts if isinstance(mount, Cover)), "/"):
        yield from ("--remount-ro", place)
    yield from ("--chdir", "/tmp")


def _variables() -> Iterator[str]:
    for name, value in environment("/tmp").items():
        yield from ("--setenv", name, value)


def _become(uid: int) -> list[str]:
    """Return the command that gives up root inside; only root can bind an interpreter under a private home."""
    program = shutil.which("setpriv", path="/usr/bin:/bin")
    if program is None:
        raise SandboxError("setpriv is missing; install it with `apt-get install util-linux` (as root).")
    rights = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    return [program, f"--reuid={uid}", f"--regid={uid}", *rights, "--"]


@cache
def _help(bwrap: str) -> str:
    return subprocess.run([bwrap, "--help"], env={}, capture_output=True, text=True, check=False).stdout
