"""Functions on descriptors that several ways of starting a worker share."""

import os
import re
import select
from pathlib import Path


def readable(descriptor: int, wait_s: float) -> bool:
    """Tell whether `descriptor` becomes readable within `wait_s` seconds; a pidfd does when its process ends."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def in_memory(content: bytes) -> int:
    """Return a descriptor from which a child reads `content`."""
    descriptor = os.memfd_create("sandbox")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def process_of(pidfd: int) -> int:
    """Return the process id behind a pidfd, as this process sees it; raise `ProcessLookupError` if it has ended."""
    match = re.search(r"^Pid:\s+(-?\d+)$", Path(f"/proc/self/fdinfo/{pidfd}").read_text(), re.MULTILINE)
    if match is None or int(match[1]) <= 0:
        raise ProcessLookupError("the process has ended")
    return int(match[1])
