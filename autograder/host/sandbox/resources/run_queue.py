"""How long processes waited for a processor, as the kernel counts it."""

import math
from pathlib import Path

from autograder.host.sandbox.resources.process_memory import tree


def waited_s(root: int) -> float:
    """Return for how many seconds threads of `root` and its descendants were ready to run and had no processor.

    The kernel's counts are of threads that are alive now. Where they cannot be read, the result is infinite.
    """
    tasks = [task for process in tree(root) for task in Path(f"/proc/{process}/task").glob("*/schedstat")]
    try:
        ran_ns, waited_ns, _ = map(sum, zip(*(map(int, task.read_text().split()) for task in tasks), strict=True))
    except (OSError, ValueError):
        return math.inf
    return waited_ns / 1e9 if ran_ns else math.inf  # a kernel without these counts shows zeros
