"""Shared memory from the host, mapped for as long as one request lasts.

All pages are mapped at once. This is faster than one by one, and calls of the same size have the same cost. The
mapping is writable. An answer that writes into its inputs changes the host's copy, so the host detects it.
"""

import contextlib
import mmap
import os
import stat
from collections.abc import Iterator, Sequence

of_device: list[int] = []
"""Descriptors of GPU memory that came with requests and are not yet mapped."""


@contextlib.contextmanager
def mapped(fds: Sequence[int]) -> Iterator[memoryview | None]:
    """Map the one descriptor in `fds`, or yield None when there is none."""
    if not fds:
        yield None
        return
    status = os.fstat(fds[0])
    if not stat.S_ISREG(status.st_mode):  # a GPU's memory, which the driver maps
        of_device.append(fds[0])
        yield memoryview(b"")
        return
    size = status.st_size
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)  # macOS maps pages one by one
    region = mmap.mmap(fds[0], size, flags=flags) if size else None
    os.close(fds[0])
    yield memoryview(region) if region is not None else memoryview(b"")
    # No close: tensors that the answer kept still point here, and the mapping lives as long as they do.
