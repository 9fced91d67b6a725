"""Levels 1 and 2: bubblewrap, run by root with a throw-away user for each worker, or by an ordinary user.

A worker that is started cold has a bubblewrap of its own. The zygote has one too. It keeps the right to make
namespaces, and uses it only in the child that becomes a worker; see `autograder.worker.confinement`.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from autograder.host.sandbox import seccomp
from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.interpreter import ZYGOTE, environment, interpreter_arguments, rlimits, zygote_environment
from autograder.host.sandbox.levels import Level, SandboxError
from autograder.host.sandbox.process import Enclosure, StartError, WorkerProcess, in_memory, readable, start_process
from autograder.host.sandbox.resource_limits import MIB, Limits
from autograder.host.sandbox.resources import Hierarchy, Resources, ThrowawayUser, process_memory
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.view import (
    COURSE,
    EMPTY,
    Bind,
    Cover,
    DeviceNode,
    Emptied,
    Link,
    Mount,
    below_temporary,
    course,
    file_system,
    outside_course,
    with_parents,
)
from autograder.host.sandbox.zygote import ForkedWorker, Zygote, ZygotePool
from autograder.protocol.orders import Mounts, Orders

NOBODY = 65_534
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
# Capabilities that are needed to become the throw-away user and to give up all other rights.
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
# Directories with numbers that count for the whole machine: one worker could tell another something by them.
MACHINE_COUNTERS = ("/proc/sys/fs", "/proc/sys/kernel")
MASKED_ZYGOTES = 2
"""Zygotes that are kept for workers without some package; each takes the memory of torch."""
_START_S, _END_S = 20.0, 10.0


class Bubblewrap(Sandbox):
    """Start each worker in its own namespaces; a control group (level 1) or a watchdog (level 2) limits memory."""

    def __init__(self, hierarchy: Hierarchy | None, device: Device = CPU) -> None:
        self._bwrap = find_bubblewrap()
        self._hierarchy = hierarchy
        self._device = device
        self.level = Level.ISOLATED_AND_LIMITED if hierarchy else Level.ISOLATED
        who = "as root, a throw-away user for each worker" if _is_root() else "as an ordinary user"
        memory = f"limited by a control group (version {hierarchy.version})" if hierarchy else "watched, not limited"
        shares = hierarchy is not None and hierarchy.shares_processors
        processors = "shared equally between workers" if shares else "not divided between workers"
        self._notes = (
            f"bubblewrap {who}",
            f"total memory is {memory}",
            f"processors are {processors}; an answer that takes too long beside others is graded again alone",
            *device.notes,
        )
        self.zygotes = ZygotePool(lambda: self._zygote(preload=True))
        self._without: dict[tuple[str, ...], ZygotePool] = {}  # by what others' packages they lack; used last, last
        self._lock = threading.Lock()

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        mounts = [*map(Cover, MACHINE_COUNTERS), *file_system(masked), *self._device.mounts]
        options = [*_isolation(self._bwrap), *_files(mounts, limits), *_variables(environment("/tmp", self._device))]
        resources = self._resources(limits, spare=1)

        def command(channel: socket.socket) -> list[str]:
            numbers = rlimits(limits, processes=limits.processes, device=self._device)
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
            covered=MACHINE_COUNTERS,
            own_users=not _is_root(),
        )
        # Two processes are ours: the keeper, and the first process of the namespace.
        resources = self._resources(limits, spare=2)
        orders = Orders(
            program=program,
            path=COURSE,
            home="/tmp",
            variables=environment("/tmp", self._device),
            rlimits=rlimits(limits, processes=limits.processes + (not _is_root()), device=self._device),
            seccomp=self._rules(),
            uid=resources.user.uid if resources.user else None,
            mounts=mounts,
        )
        return WorkerProcess(ForkedWorker(zygotes.fork, orders, limits, resources), limits)

    def _zygotes_without(self, masked: Sequence[str]) -> ZygotePool | None:
        outside = tuple(outside_course(masked))
        if self.zygotes is None or not outside or "torch" in outside:  # without torch, a cold start takes little
            return super()._zygotes_without(masked)
        with self._lock:
            zygotes = self._without.pop(outside, None) or ZygotePool(lambda: self._zygote(preload=True, masked=outside))
            self._without[outside] = zygotes
            for unused in [*self._without.values()][:-MASKED_ZYGOTES]:
                unused.close(patience_s=0.0)
        return zygotes

    def _zygote(self, *, preload: bool, masked: Sequence[str] = ()) -> Zygote:
        mounts = [*file_system(masked), *self._device.mounts]
        variables = zygote_environment("/tmp", self._device)
        options = [*_isolation(self._bwrap, for_zygote=True), *_files(mounts, Limits()), *_variables(variables)]
        program = ZYGOTE.format(preload=preload)

        def spawn(control: socket.socket, complaints: int) -> subprocess.Popen[bytes]:
            arguments = interpreter_arguments(program, {"RLIMIT_CORE": 0}, channel=control.fileno(), path=COURSE)
            given = in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
            try:
                command = [self._bwrap, "--args", str(given), "--", sys.executable, *arguments]
                return start_process(command, complaints, (control.fileno(), given), {})
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
            case Emptied(target):
                yield from ("--ro-bind", EMPTY, target)
    # These are memory file systems, which a worker could fill; read-only is possible once all mounts are made.
    for place in ("/dev", *(mount.target for mount in mounts if isinstance(mount, Cover)), "/"):
        yield from ("--remount-ro", place)
    yield from ("--chdir", "/tmp")


def _variables(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
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


class BubblewrapProcess(Enclosure):
    """One worker in bubblewrap; killing the first process of its process namespace kills all the others."""

    def __init__(
        self,
        bwrap: str,
        options: Sequence[str],
        rules: bytes,
        command: Callable[[socket.socket], list[str]],
        resources: Resources,
        memory_bytes: int,
    ) -> None:
        self._bwrap, self._options, self._rules, self._command = bwrap, options, rules, command
        self._resources, self._group, self._memory_bytes = resources, resources.group, memory_bytes
        self._first_pid = 0
        self._first: int | None = None  # a pidfd: unlike a process id, it is never reused
        # A watchdog has to look more often than a reader of the kernel's counters.
        self.tick_s = 0.1 if self._group else 0.025

    def spawn(self, channel: socket.socket, output: int) -> subprocess.Popen[bytes]:
        """Start bubblewrap, limit its first process, and only then let it continue."""
        info_read, info_write = os.pipe()
        block_read, block_write = os.pipe()
        rules = in_memory(self._rules)
        reports = ("--seccomp", str(rules), "--info-fd", str(info_write), "--block-fd", str(block_read))
        options = [*reports, *self._options]
        # Passed by descriptor, so that the worker cannot read the host's paths in /proc/1/cmdline.
        arguments = in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
        try:
            command = [self._bwrap, "--args", str(arguments), "--", *self._command(channel)]
            process = start_process(command, output, (channel.fileno(), info_write, block_read, rules, arguments), {})
        finally:
            for descriptor in (info_write, block_read, rules, arguments):
                os.close(descriptor)
        try:
            self._hold(_child_pid(info_read))
            os.write(block_write, b"1")
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            os.close(info_read)
            os.close(block_write)
        return process

    def explain(self, printed: str) -> str:
        """Name the kernel setting that refuses namespaces, and the command that allows them."""
        if "namespace" not in printed and "uid map" not in printed:
            return f"bubblewrap could not build the sandbox ({printed})."
        return (
            f"This machine does not allow new namespaces ({printed}). Its administrator allows them with"
            " `sysctl -w kernel.unprivileged_userns_clone=1` (Debian) or"
            " `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu); a container needs"
            " `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`."
        )

    def _hold(self, pid: int) -> None:
        try:
            self._first = os.pidfd_open(pid)
            self._first_pid = pid
            if self._group:
                self._group.add(pid)
        except OSError as error:
            raise StartError(f"its first process cannot be limited ({error})") from error

    def out_of_memory(self) -> str:
        """Ask the control group; without one, count the memory of all processes."""
        if self._group:
            return f"used all of its {self._memory_bytes / MIB:.0f} MB of memory" if self._group.oom_kills() else ""
        if self._has_ended(0.0):
            return ""
        processes = list(process_memory.tree(self._first_pid))
        return process_memory.excess(processes, self._memory_bytes, tmpfs_of=self._first_pid)

    def kill(self) -> None:
        """Kill the first process, and with it the whole process namespace."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self._group:
            self._group.kill()

    def exit_code(self, status: int) -> int:
        """Translate bubblewrap's status: like a shell, it reports a signal as 128 plus its number."""
        return 128 - status if status > 128 else status

    def close(self) -> None:
        """Wait for the last process, then release the resources and close the descriptor."""
        self._has_ended(_END_S)
        self._resources.release()
        if self._first is not None:
            os.close(self._first)
            self._first = None

    def _has_ended(self, wait_s: float) -> bool:
        """Tell whether the first process has ended; the kernel ends it last of all in its namespace."""
        return self._first is None or readable(self._first, wait_s)


def _child_pid(info_read: int) -> int:
    """Read from bubblewrap's report the process id of the first process in the namespace."""
    text = b""
    while not text.rstrip().endswith(b"}"):
        ready = readable(info_read, _START_S)
        part = os.read(info_read, 4096) if ready else b""
        if not part:
            raise StartError("bubblewrap did not start" if ready else f"bubblewrap took more than {_START_S:g} s")
        text += part
    return int(json.loads(text)["child-pid"])
