"""Attacks that a sandbox must withstand, each bounded and harmless to a machine that fails.

The program runs instead of the worker, with the channel as descriptor 3. It reads one JSON object (which attacks, on
what target), and writes what each attack gained, "" for nothing. Some attacks end the process when they are contained.
"""

import contextlib
import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

CHANNEL = 3
CLONE_NEWUSER = 0x10000000
MIB = 1 << 20

Target = Mapping[str, Any]


def read_a_file(target: Target) -> str:
    """read a file of the host"""
    return Path(target["secret_file"]).read_text()


def read_the_grader(target: Target) -> str:
    """import or read the judging half of the grader"""
    with contextlib.suppress(OSError):
        return f"{Path(target['grader'], '__init__.py').read_text()[:20]!r} of {target['grader']}"
    with contextlib.suppress(OSError):
        return f"{len(os.listdir(target['grader']))} names in {target['grader']}"  # noqa: PTH208 - names are enough
    import autograder.host as grader

    return grader.__name__


def connect(target: Target) -> str:
    """connect to a server on the host"""
    reached = []
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target["port"]), timeout=1):
        reached.append("TCP")
    for name, address in (("a named socket", target["socket_file"]), ("an abstract socket", target["abstract"])):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as channel:
            channel.connect(address)
            reached.append(name)
    with contextlib.suppress(OSError):
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with first, second:
            first.connect(target["datagrams"])
            reached.append("a named socket for datagrams")
    return ", ".join(reached)


def signal_the_host(target: Target) -> str:
    """signal the process of the host"""
    if not _is_the_host(target):
        return ""
    os.kill(target["pid"], 0)
    return f"process {target['pid']} can be signalled"


def disturb_the_host(target: Target) -> str:
    """change the limits, the priority or the rights of what belongs to the host"""
    process, file = target["pid"], target["secret_file"]
    if not _is_the_host(target):
        process = -1  # in a namespace, another process has this id
    attempts: dict[str, Callable[[], object]] = {
        "limits": lambda: resource.prlimit(process, resource.RLIMIT_CORE),
        "processors": lambda: os.sched_setaffinity(process, os.sched_getaffinity(process)),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, process)),
        "rights of a file": lambda: Path(file).chmod(0o600),
        "times of a file": lambda: os.utime(file),
    }
    changed = []
    for name, attempt in attempts.items():
        with contextlib.suppress(OSError):
            attempt()
            changed.append(name)
    return ", ".join(changed)


def read_environments(target: Target) -> str:
    """read a variable of the host's environment"""
    found = set(os.environ)
    processes = [str(target["pid"]), *(place.name for place in Path("/proc").glob("[0-9]*"))]
    for place in (Path("/proc", process, "environ") for process in processes):
        with contextlib.suppress(OSError):
            found |= {entry.partition("=")[0] for entry in place.read_text(errors="replace").split("\0") if entry}
    return ", ".join(sorted(found & set(target["variables"])))


def write_elsewhere(target: Target) -> str:
    """write outside the private folder"""
    written = []
    private = {Path("/tmp").resolve(), Path(os.environ.get("TMPDIR", "/tmp")).resolve()}
    shared = () if len(private) == 1 else ("/tmp", "/dev/shm", "/var/tmp")  # the host's own
    usual = (*shared, "/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/root", "/home", "/course")
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
    if int(_status("CapPrm"), 16) or (int(_status("CapBnd"), 16) and _status("NoNewPrivs") == "0"):
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
    for directory in {os.environ.get("TMPDIR", "/tmp"), "/tmp", "/dev/shm"}:
        place = Path(directory, f".autograder-probe-{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                place.write_bytes(bytes(2 * target["tmp_bytes"]))
                time.sleep(0.3)  # long enough for a watchdog to look
                filled.append(directory)
            finally:
                place.unlink()
    return ", ".join(filled)


def use_memory(target: Target) -> str:
    """use more memory than allowed"""
    size = target["memory_bytes"] * 3 // 2
    # Shared, so that no limit on one process counts it; written to, so that it takes memory.
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
        signal_the_host,
        disturb_the_host,
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
    """Yield each attack of the target and what it gained; a refused attack gained nothing."""
    for name in target["attacks"]:
        try:
            yield name, ATTACKS[name](target)
        except (OSError, ImportError, MemoryError):
            yield name, ""


def run() -> None:
    """Read the target from the channel, attack it, and write the results there, line by line."""
    with socket.socket(fileno=CHANNEL) as channel, channel.makefile("rw") as lines:
        for pair in gains(json.loads(lines.readline())):
            lines.write(json.dumps(pair) + "\n")
            lines.flush()


def _is_the_host(target: Target) -> bool:
    """Tell whether the host's process id means the host here, not another process in a new namespace."""
    try:
        started = Path("/proc", str(target["pid"]), "stat").read_text().rpartition(")")[2].split()[19]
    except PermissionError:
        return True
    except OSError:
        return False
    return bool(started == target["pid_started"])


def _status(field: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))


def _succeeds(call: Callable[[], int]) -> bool:
    """Make the call in a child, since it may trace or change the process; tell whether it was allowed."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(OSError):
            code = 0 if call() >= 0 else 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    run()
