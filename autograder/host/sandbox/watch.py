"""Counts the memory of a tree of processes from outside, for machines without a control group to do it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from autograder.host.sandbox.limits import MIB

_CHEAP = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_SHARED_FAIRLY = re.compile(r"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
INODE_BYTES = 1024  # what the kernel keeps of an empty file on tmpfs, rounded up


def tree(root: int) -> Iterator[int]:
    """Yield ``root`` and all its descendants that are alive now."""
    yield root
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))


def excess(root: int, memory_bytes: int) -> str:
    """Say what is used, if the processes below ``root`` with its /tmp and /dev/shm hold more than ``memory_bytes``.

    The cheap sum counts pages that processes share once for each of them, so it is only believed when it is low.
    """
    processes = list(tree(root))
    files = sum(_held_by_files(root, place) for place in ("tmp", "dev/shm"))
    if files + _sum(processes, "status", _CHEAP) <= memory_bytes:
        return ""
    private = _sum(processes, "smaps_rollup", _SHARED_FAIRLY)
    if files + private <= memory_bytes:
        return ""
    used = f"{private / MIB:.0f} MB in {len(processes)} processes and {files / MIB:.0f} MB in files"
    return f"used {used}, where {memory_bytes / MIB:.0f} MB are allowed"


def _sum(processes: list[int], file: str, pattern: re.Pattern[str]) -> int:
    total_kib = 0
    for pid in processes:
        with contextlib.suppress(OSError):
            total_kib += sum(map(int, pattern.findall(Path(f"/proc/{pid}/{file}").read_text())))
    return total_kib * 1024


def _held_by_files(root: int, place: str) -> int:
    """Return what a tmpfs of the sandbox holds, seen through the root directory of its first process."""
    with contextlib.suppress(OSError):
        # Opened once, because the name leads elsewhere from one moment to the next while the root is being changed.
        directory = os.open(f"/proc/{root}/root/{place}", os.O_PATH | os.O_DIRECTORY)
        try:
            if os.fstat(directory).st_dev == Path("/", place).stat().st_dev:
                return 0  # it has not left the host's root yet
            state = os.fstatvfs(directory)
        finally:
            os.close(directory)
        return (state.f_blocks - state.f_bfree) * state.f_frsize + (state.f_files - state.f_ffree) * INODE_BYTES
    return 0
