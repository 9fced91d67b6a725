"""Large pages for a process that is forked often: its page tables, which every fork copies, become far smaller."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from autograder.worker.confinement import kernel

LARGE_PAGE_BYTES = 2 << 20  # of x86-64, and of arm64 with ordinary pages of 4 KiB
STEP_BYTES = 8 * LARGE_PAGE_BYTES
"""Gathered in one go, after which somebody else may be served."""


def gather() -> Iterator[None]:
    """Gather the private memory of this process in large pages, a step for each item.

    A large page that is written to after a fork falls apart, and of its ordinary pages only those written are copied.
    """
    for begin, end in private_ranges(Path("/proc/self/maps").read_text()):
        for start in range(begin, end, STEP_BYTES):
            with suppress(OSError):  # an older kernel, or no room for large pages: ordinary ones do as well
                kernel.madvise(start, min(end, start + STEP_BYTES) - start, kernel.MADV_COLLAPSE)
            yield


def private_ranges(maps: str) -> Iterator[tuple[int, int]]:
    """First and last address of the private, writable memory in `maps`, a text as of /proc/self/maps.

    Without memory of files and with whole large pages only.
    """
    for line in maps.splitlines():
        addresses, access, _, _, _, *name = line.split(maxsplit=5)
        if access == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin = -(-begin // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
            end = end // LARGE_PAGE_BYTES * LARGE_PAGE_BYTES
            if begin < end:
                yield begin, end
