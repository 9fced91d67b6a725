"""Strategy: take more memory in shared pages, which a limit on private data does not count. Surface: MAP_SHARED.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: memory is counted where it lies, for all processes of a worker together.
"""

import mmap
import time


def read_graph(target):
    size = 2 * target["memory_bytes"]
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
        time.sleep(3.0)  # long enough for a watchdog to look
    return f"{size >> 20} MB"
