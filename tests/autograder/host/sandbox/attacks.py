"""Attacks on the machine: each returns what it gained, and "" or an exception where it is refused.

This text runs in the worker's place, with standard library and the arguments of one function; all are bounded, so that
they do no harm where nothing keeps them out.
"""

import mmap
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

MIB = 1 << 20


def read_the_gradebook(path):
    """Open a file that only its owner, who runs the grader, may read."""
    return Path(path).read_text()


def change_the_gradebook(path):
    """Write to it."""
    Path(path).write_text("everyone: 100")
    return "written"


def connect_over_tcp(port):
    """Reach a server on the machine's own loopback."""
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return "connected"


def connect_to_an_abstract_socket(name):
    """Reach a socket without a file, which no file permission protects."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect("\0" + name)
        return "connected"


def connect_to_a_socket_file(path):
    """Reach a socket with a file."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        return "connected"


def kill_the_parent():
    """End the process that started this one."""
    parent = os.getppid()
    os.kill(parent, signal.SIGKILL)
    deadline = time.monotonic() + 0.5
    while os.getppid() == parent and time.monotonic() < deadline:
        time.sleep(0.01)
    return "" if os.getppid() == parent else "killed"


def find_in_processes(*parts):
    """Look for a text in all visible command lines, where tools show passwords and paths.

    It comes in parts, because this program's own command line would show it otherwise.
    """
    return ", ".join(str(place) for place in Path("/proc").glob("[0-9]*/cmdline") if "".join(parts) in _text(place))


def find_in_environments(token):
    """Look for a token in the environments of all visible processes, including the first and this one."""
    return ", ".join(str(place) for place in Path("/proc").glob("[0-9]*/environ") if token in _text(place))


def fork_bomb(allowed):
    """Start processes that start nothing else, up to a bound."""
    started = _fork_many(4 * allowed)
    return f"{started} processes" if started > allowed else ""


def start_threads(allowed):
    """Start threads, which are processes to the kernel."""
    import threading

    stop = threading.Event()
    started = 0
    try:
        for _ in range(2 * allowed):
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        return ""
    finally:
        stop.set()
    return f"{started} threads"


def memory_in_one_process(limit):
    """Take twice the allowed memory, and write to all of it."""
    held = []
    for _ in range(2 * limit // (16 * MIB)):
        held.append(_used(16 * MIB))
    return f"{len(held) * 16} MB"


def memory_in_many_processes(limit):
    """Take twice the allowed memory in four processes, each below the limit."""
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            held = _used(limit // 2)
            time.sleep(0.7)
            os._exit(0 if held else 1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return "4 × half the limit" if codes == [0, 0, 0, 0] else ""


def memory_in_files_without_a_name(limit):
    """Take twice the allowed memory in files without a name, which no process's count includes."""
    for _ in range(8):
        descriptor = os.memfd_create("attack")
        for _ in range(limit // 4 // MIB):
            os.write(descriptor, bytes(MIB))
    return f"{2 * limit // MIB} MB"


def memory_in_shared_pages(limit):
    """Take twice the allowed memory in shared pages, which a limit on private data does not count."""
    size = 2 * limit
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
        time.sleep(0.7)
    return f"{size // MIB} MB"


def fill_the_disk(allowed):
    """Write more than allowed, half of it in removed files, which no search finds."""
    open_files = []
    try:
        for number in range(4):
            make = tempfile.TemporaryFile if number % 2 else tempfile.NamedTemporaryFile
            file = make()
            open_files.append(file)
            file.write(bytes(allowed // 2))
            file.flush()
        time.sleep(0.7)
    finally:
        for file in open_files:
            file.close()
    return f"{2 * allowed} bytes"


def write_one_large_file(allowed):
    """Write a file above the limit for one file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(allowed + 1))
        file.flush()
        time.sleep(0.7)
    return f"{allowed + 1} bytes"


def fill_the_device_directory():
    """Write into /dev, which is memory too."""
    place = Path("/dev", f".attack-{os.getpid()}")
    place.write_bytes(bytes(MIB))
    place.unlink()
    return "1 MB in /dev"


def leave_a_residue(name):
    """Leave files for the next worker, and look for files of the last one."""
    found = []
    for directory in ("/tmp", "/dev/shm"):
        place = Path(directory, name)
        if place.exists():
            found.append(str(place))
            place.unlink()
        else:
            place.write_text("left behind")
    return ", ".join(found)


def use_inherited_descriptors(marker):
    """Read every descriptor except input, output and channel."""
    for number in range(4, 256):
        try:
            if marker in os.pread(number, 4096, 0).decode(errors="replace"):
                return f"descriptor {number}"
        except OSError:
            continue
    return ""


def import_the_judge(root):
    """Import the judging half of the grader, or find its files."""
    if _text(Path(root, "autograder", "host", "judge.py")):
        return "its files"
    import autograder.host

    return autograder.host.__name__


def mount_something():
    """Change mounts in a namespace, as its root."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(0x10000000 | 0x00020000) != 0:
        return ""
    return "a user and a mount namespace"


def read_another_process(token):
    """Read the memory of the parent, which holds a token."""
    parent = os.getppid()
    with Path(f"/proc/{parent}/maps").open() as maps, Path(f"/proc/{parent}/mem").open("rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if rights.startswith("rw") and "[v" not in line:
                memory.seek(start)
                if token.encode() in memory.read(end - start):
                    return "found"
    return ""


def _text(place):
    try:
        return place.read_text(errors="replace")
    except OSError:
        return ""


def _used(size):
    held = bytearray(size)
    held[:: mmap.PAGESIZE] = b"\1" * len(range(0, size, mmap.PAGESIZE))
    return held


def _fork_many(bound):
    children = []
    try:
        while len(children) < bound:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return len(children)
