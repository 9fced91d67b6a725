"""What macOS and Windows lack, hidden from the process that runs this: a simulation, where there is no such machine.

The standard library is all that it imports, since a worker runs this text before its own first line.
"""

import builtins
import fcntl
import io
import mmap
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import Any

# Names that Python's documentation marks as "Availability: Linux", or "Unix, not macOS".
ONLY_LINUX: dict[Any, tuple[str, ...]] = {
    os: (
        *("memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "pidfd_open", "P_PIDFD", "O_PATH", "O_TMPFILE"),
        *("sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "sched_getscheduler", "sched_param"),
        *("SCHED_RESET_ON_FORK", "SCHED_BATCH", "SCHED_IDLE", "setresuid", "setresgid", "getresuid", "getresgid"),
        *("eventfd", "splice", "getrandom", "copy_file_range", "posix_fadvise", "posix_fallocate", "listxattr"),
    ),
    fcntl: ("F_ADD_SEALS", "F_GET_SEALS", "F_SEAL_SEAL", "F_SEAL_SHRINK", "F_SEAL_GROW", "F_SEAL_WRITE"),
    mmap: ("MAP_POPULATE", "MADV_HUGEPAGE", "MADV_DONTFORK", "MADV_REMOVE"),
    resource: ("prlimit", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_RTTIME", "RLIMIT_SIGPENDING"),
    signal: ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    socket: ("SO_PASSCRED", "SO_PEERCRED", "SCM_CREDENTIALS", "MSG_CMSG_CLOEXEC", "AF_NETLINK"),
}
NOT_ON_WINDOWS = ("fcntl", "resource", "pwd", "grp", "termios", "pty")


def hide_macos() -> None:
    """Remove what macOS lacks, /proc and the limits that its kernel refuses included."""
    for module, names in ONLY_LINUX.items():
        for name in names:
            vars(module).pop(name, None)
    tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined]  # found out when it was imported
    usual = resource.setrlimit

    def setrlimit(which: int, limits: tuple[int, int]) -> None:
        if which in (resource.RLIMIT_DATA, resource.RLIMIT_AS):
            raise ValueError("current limit exceeds maximum limit")  # as macOS 13 to 26 answer
        usual(which, limits)

    resource.setrlimit = setrlimit
    _hide_proc()
    _refuse_packets()


class MacSys:
    """`sys`, as a module of ours finds it on macOS; what others load must still be what this machine has."""

    platform = "darwin"

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def call_it_macos(*packages: str) -> None:
    """Let the loaded modules of `packages` take this system for macOS."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in packages and vars(module).get("sys") is sys:
            module.sys = MacSys()  # type: ignore[attr-defined]


def hide_windows() -> None:
    """Remove the modules that Python on Windows lacks."""
    for name in NOT_ON_WINDOWS:
        sys.modules[name] = None  # type: ignore[assignment]  # so that an import fails


def _hide_proc() -> None:
    """Let /proc be missing for every function that takes a path first."""

    def without(usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".", *rest: Any, **named: Any) -> Any:
            if not isinstance(path, int) and os.fsdecode(path).startswith("/proc"):
                raise FileNotFoundError(2, "No such file or directory", os.fsdecode(path))
            return usual(path, *rest, **named)

        return call

    builtins.open = io.open = without(io.open)
    for name in ("open", "stat", "lstat", "listdir", "scandir", "readlink", "access"):
        setattr(os, name, without(getattr(os, name)))


def _refuse_packets() -> None:
    """Refuse the kind of socket over which a host talks to a zygote."""
    usual = socket.socketpair

    def socketpair(family: int | None = None, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> Any:
        if kind == socket.SOCK_SEQPACKET:
            raise OSError(43, "Protocol not supported")
        return usual(family, kind, protocol)

    socket.socketpair = socketpair  # type: ignore[assignment]
