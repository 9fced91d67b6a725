"""Large pages for a process that forks often: its page tables, which every fork copies, become far smaller."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from autograder.worker.confinement import kernel

LARGE_PAGE_BYTES = 2 << 20  # of x86-64, and of arm64 with ordinary pages of 4 KiB
STEP_BYTES = 8 * LARGE_PAGE_BYTES
"""How much one step collapses; requests are served between steps."""


def collapse_pages() -> Iterator[None]:
    """Collapse the private memory of this process into large pages; each item of the iterator is one step.

    A write after a fork splits a large page, and only the written ordinary pages are copied.
    """
    for begin, end in private_ranges(Path("/proc/self/maps").read_text()):
        for start in range(begin, end, STEP_BYTES):
            with suppress(OSError):  # an older kernel, or no free large pages: the ordinary pages stay
                kernel.madvise(start, min(end, start + STEP_BYTES) - start, kernel.MADV_COLLAPSE)
            yield


def private_ranges(maps: str) -> Iterator[tuple[int, int]]:
    """Yield first and last address of the private, writable memory in `maps`, a text like /proc/self/maps.

    Memory of files is left out, and only whole large pages count.
    """
    for line in maps.splitlines():
        addresses, access, _, _, _, *name = line.split(maxsplit=5)
        if access == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin = -(-begin // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
            end = end // LARGE_PAGE_BYTES * LARGE_PAGE_BYTES
            if begin < end:
                yield begin, end
