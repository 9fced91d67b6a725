"""The memory of a tree of processes, counted from outside, for machines without a control group."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.host.sandbox.resource_limits import MIB

_CHEAP = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_SHARED_FAIRLY = re.compile(r"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
INODE_BYTES = 1024  # memory of the kernel for an empty file on tmpfs, rounded up


def tree(root: int) -> Iterator[int]:
    """Yield `root` and all its descendants that are alive now."""
    yield root
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))


def excess(processes: Sequence[int], memory_bytes: int, *, tmpfs_of: int = 0) -> str:
    """Return a sentence if `processes` and the tmpfs of `tmpfs_of` hold more than `memory_bytes`, else "".

    The quick sum counts a shared page once for each process, so it is trusted only if it is below the limit.
    """
    files = sum(_held_by_files(tmpfs_of, place) for place in ("tmp", "dev/shm")) if tmpfs_of else 0
    if files + sum(_cheap(process) for process in processes) <= memory_bytes:
        return ""
    # Measured twice: while processes start or end, their shares can add up to more than the total.
    private = min(sum(_fair(process) for process in processes) for _ in range(2))
    if files + private <= memory_bytes:
        return ""
    used = f"{private / MIB:.0f} MB in {len(processes)} processes and {files / MIB:.0f} MB in files"
    return f"used {used}, where {memory_bytes / MIB:.0f} MB are allowed"


def _cheap(process: int) -> int:
    with contextlib.suppress(OSError):
        return 1024 * sum(map(int, _CHEAP.findall(Path(f"/proc/{process}/status").read_text())))
    return 0


def _fair(process: int) -> int:
    """Count shared pages by their share; count them whole where this process may not read the shares."""
    try:
        return 1024 * sum(map(int, _SHARED_FAIRLY.findall(Path(f"/proc/{process}/smaps_rollup").read_text())))
    except PermissionError:
        return _cheap(process)
    except OSError:
        return 0


def _held_by_files(root: int, place: str) -> int:
    """Return the bytes in a tmpfs of the sandbox, read through the root folder of its first process."""
    with contextlib.suppress(OSError):
        # Opened once, because the path changes its meaning while the process changes its root.
        directory = os.open(f"/proc/{root}/root/{place}", os.O_PATH | os.O_DIRECTORY)
        try:
            if os.fstat(directory).st_dev == Path("/", place).stat().st_dev:
                return 0  # the process is still in the host's root
            state = os.fstatvfs(directory)
        finally:
            os.close(directory)
        return (state.f_blocks - state.f_bfree) * state.f_frsize + (state.f_files - state.f_ffree) * INODE_BYTES
    return 0
