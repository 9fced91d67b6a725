"""Attacks that a sandbox must withstand, each bounded and harmless to the machine that fails to.

Runs instead of the worker, with the channel as descriptor 3: one JSON object comes in (what to attack), one goes out
(attack to what it gained, "" for nothing). The attack on memory comes last, because success for the sandbox is that
nobody lives to tell.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHANNEL = 3
CLONE_NEWUSER = 0x10000000
MIB = 1 << 20

Target = dict[str, Any]


def read_a_file(target: Target) -> str:
    """read a file of the host"""
    return Path(target["secret_file"]).read_text()


def read_the_grader(target: Target) -> str:
    """import or read the judging half of the grader"""
    if Path(target["grader"]).exists():
        return f"{target['grader']} is there"
    import autograder.host as grader

    return grader.__name__


def connect(target: Target) -> str:
    """connect to a server on the host"""
    with socket.create_connection(("127.0.0.1", target["port"]), timeout=1):
        return "connected over TCP"


def see_processes(target: Target) -> str:
    """see or signal the process of the host"""
    started = Path("/proc", str(target["pid"]), "stat").read_text().rpartition(")")[2].split()[19]
    if started != target["pid_started"]:
        return ""  # another process that has this number in a namespace of its own
    os.kill(target["pid"], 0)
    return f"process {target['pid']} is visible and can be signalled"


def read_environments(target: Target) -> str:
    """read a variable of the host's environment"""
    found = set(os.environ)
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found |= {entry.partition("=")[0] for entry in place.read_text(errors="replace").split("\0") if entry}
    return ", ".join(sorted(found & set(target["variables"])))


def write_elsewhere(target: Target) -> str:
    """write outside /tmp"""
    written = []
    usual = ("/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/root", "/home", "/course")
    for directory in (*usual, *target["directories"]):
        place = Path(directory, f".autograder-probe-{os.getpid()}")
        with contextlib.suppress(OSError):
            place.touch()
            place.unlink()
            written.append(directory)
    return ", ".join(written)


def gain_rights(_: Target) -> str:
    """become another user, or root in a namespace"""
    library = ctypes.CDLL(None)
    gained = []
    if int(_status("CapPrm"), 16) or int(_status("CapBnd"), 16):
        gained.append("capabilities")
    if library.setresuid(0, 0, 0) == 0:
        gained.append("user 0")
    if library.unshare(CLONE_NEWUSER) == 0:
        gained.append("a user namespace")
    return ", ".join(gained)


def use_the_kernel(_: Target) -> str:
    """use kernel calls that no answer needs"""
    library = ctypes.CDLL(None)
    calls: dict[str, Callable[[], int]] = {
        "ptrace": lambda: library.ptrace(0, 0, 0, 0),
        "process_vm_readv": lambda: library.process_vm_readv(os.getpid(), None, 0, None, 0, 0),
        "io_uring": lambda: library.syscall(425, 1, ctypes.create_string_buffer(256)),
        "AF_NETLINK": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).fileno(),
    }
    return ", ".join(name for name, call in calls.items() if _succeeds(call))


def use_descriptors(_: Target) -> str:
    """use an open file inherited from the host"""
    opened = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - one descriptor, known to be the last
    inherited = [number for number in sorted(opened)[:-1] if number > CHANNEL]
    return f"descriptors {inherited}" if inherited else ""


def start_processes(target: Target) -> str:
    """start more processes than allowed"""
    children: list[int] = []
    try:
        while len(children) < 2 * target["processes"]:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        return ""
    else:
        return f"{len(children)} processes"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def fill_the_disk(target: Target) -> str:
    """write more than allowed to the places that can be written"""
    filled = []
    for directory in ("/tmp", "/dev/shm"):
        place = Path(directory, f".autograder-probe-{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                place.write_bytes(bytes(2 * target["tmp_bytes"]))
                filled.append(directory)
            finally:
                place.unlink()
    return ", ".join(filled)


def use_memory(target: Target) -> str:
    """use more memory than allowed"""
    size = target["memory_bytes"] * 3 // 2
    # Shared, so that no limit on a single process counts it; touched, so that it is really there.
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
        time.sleep(0.5)
    return f"{size // MIB} MB"


ATTACKS: dict[str, Callable[[Target], str]] = {
    attack.__name__: attack
    for attack in (
        read_a_file,
        read_the_grader,
        connect,
        see_processes,
        read_environments,
        write_elsewhere,
        gain_rights,
        use_the_kernel,
        use_descriptors,
        start_processes,
        fill_the_disk,
        use_memory,
    )
}


def gains(target: Target) -> Iterator[tuple[str, str]]:
    """Yield each attack and what it gained; an attack that is refused gained nothing."""
    for name, attack in ATTACKS.items():
        try:
            yield name, attack(target)
        except (OSError, ImportError, MemoryError):
            yield name, ""


def run() -> None:
    """Attack what the channel says and report there, line by line."""
    with socket.socket(fileno=CHANNEL) as channel, channel.makefile("rw") as lines:
        for pair in gains(json.loads(lines.readline())):
            lines.write(json.dumps(pair) + "\n")
            lines.flush()


def _status(field: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


def _succeeds(call: Callable[[], int]) -> bool:
    """Call in a child, which is the one to be traced or changed; whether the call was allowed."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(OSError):
            code = 0 if call() >= 0 else 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    run()
