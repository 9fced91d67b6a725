"""Levels 1 and 2: bubblewrap, as root with a throw-away user for each worker, or as an ordinary user."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from autograder.host.sandbox import seccomp
from autograder.host.sandbox.cgroup import Hierarchy
from autograder.host.sandbox.errors import SandboxError
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.limits import Limits
from autograder.host.sandbox.namespaces import Namespaces
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.sandbox import Sandbox, environment, interpreter_arguments
from autograder.host.sandbox.slots import Slot
from autograder.host.sandbox.view import COURSE, Bind, Cover, Link, Mount, file_system, with_parents

NOBODY = 65_534
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
# Enough to become the slot's user and to give up everything else on the way.
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


class Bubblewrap(Sandbox):
    """Namespaces of its own for each worker, with a control group (level 1) or a watchdog (level 2) for memory."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self._bwrap = find_bubblewrap()
        self._hierarchy = hierarchy
        self.level = Level.ISOLATED_AND_LIMITED if hierarchy else Level.ISOLATED
        who = "as root, a throw-away user for each worker" if _is_root() else "as an ordinary user"
        memory = f"limited by a control group (version {hierarchy.version})" if hierarchy else "watched, not limited"
        self.notes = (f"bubblewrap {who}", f"total memory is {memory}")

    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        options = [*_isolation(self._bwrap), *_files(file_system(masked), limits), *_variables()]
        rules = seccomp.program(countable_memory_only=self._hierarchy is None)
        slot = Slot() if _is_root() else None
        try:
            group = self._hierarchy.group(limits) if self._hierarchy else None
        except OSError as error:
            if slot:
                slot.release()
            raise SandboxError(f"A control group for the worker could not be made ({error}).") from error

        def command(channel: socket.socket) -> list[str]:
            arguments = interpreter_arguments(
                program, limits, channel=channel.fileno(), path=COURSE, count_processes=True
            )
            return [*(_become(slot.uid) if slot else ()), sys.executable, *arguments]

        namespaces = Namespaces(self._bwrap, options, rules, command, slot, group, limits.memory_bytes)
        return WorkerProcess(namespaces, limits)


def find_bubblewrap() -> str:
    """Return the path of bubblewrap, or raise SandboxError saying how to install it."""
    place = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if place is None:
        raise SandboxError("bubblewrap is missing; install it with `apt-get install bubblewrap` (as root).")
    return place


def _is_root() -> bool:
    return os.geteuid() == 0


def _isolation(bwrap: str) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", *_NAMESPACES, "--hostname", "sandbox")
    if _is_root():
        yield from ("--cap-drop", "ALL")
        for capability in _CAPABILITIES:
            yield from ("--cap-add", capability)
    else:
        yield from ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY))
        if "--disable-userns" in _help(bwrap):
            yield "--disable-userns"


def _files(mounts: Sequence[Mount], limits: Limits) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    for size, place in ((limits.tmp_bytes, "/tmp"), (limits.shm_bytes, "/dev/shm")):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", place)
    for mount, parents in with_parents(mounts):
        # Left to itself, bubblewrap makes parents that only root may enter.
        for parent in parents:
            yield from ("--dir", parent)
        match mount:
            case Bind(source, target):
                yield from ("--ro-bind", source, target)
            case Link(points_to, target):
                yield from ("--symlink", points_to, target)
            case Cover(target):
                yield from ("--tmpfs", target)
    # Only now is nothing more mounted inside these; what bubblewrap made for them is memory that anyone could fill.
    for place in ("/dev", *(mount.target for mount in mounts if isinstance(mount, Cover)), "/"):
        yield from ("--remount-ro", place)
    yield from ("--chdir", "/tmp")


def _variables() -> Iterator[str]:
    for name, value in environment("/tmp").items():
        yield from ("--setenv", name, value)


def _become(uid: int) -> list[str]:
    """Return the command that gives up root; only root can bind an interpreter that lies under a private home."""
    program = shutil.which("setpriv", path="/usr/bin:/bin")
    if program is None:
        raise SandboxError("setpriv is missing; install it with `apt-get install util-linux` (as root).")
    rights = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    return [program, f"--reuid={uid}", f"--regid={uid}", *rights, "--"]


@cache
def _help(bwrap: str) -> str:
    return subprocess.run([bwrap, "--help"], env={}, capture_output=True, text=True, check=False).stdout
