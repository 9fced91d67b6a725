"""Shared memory from the host, mapped for as long as one request lasts.

All pages are mapped at once, which is quicker than one by one, and costs every call of a size the same. The mapping is
writable: an answer that writes into its inputs writes into the host's copy of them, and is seen.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def mapped(fds: Sequence[int]) -> Iterator[memoryview | None]:
    """Map the one descriptor in ``fds``, or yield ``None`` when there is none."""
    if not fds:
        yield None
        return
    size = os.fstat(fds[0]).st_size
    region = mmap.mmap(fds[0], size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) if size else None
    os.close(fds[0])
    yield memoryview(region) if region is not None else memoryview(b"")
    # No close: tensors that the answer kept still point here, and the mapping lives as long as they do.
