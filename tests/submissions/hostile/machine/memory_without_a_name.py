"""Strategy: take more memory in files that exist only as descriptors, and in shared pages. Surface: memfd_create, MAP_SHARED.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: memory is counted where it lies, whoever maps it.
"""

import mmap
import os
import time


def read_graph(target):
    size = target["memory_bytes"]
    for _ in range(4):
        descriptor = os.memfd_create("attack")
        for _ in range(size // 4 >> 20):
            os.write(descriptor, b"x" * (1 << 20))
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
        time.sleep(0.7)
    return f"{2 * size >> 20} MB"
