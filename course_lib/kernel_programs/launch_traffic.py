"""Count the bytes that each launch of a log moved: different elements of each tensor, once for each launch."""

from collections import defaultdict

import numpy as np

from course_lib.errors import KernelError
from course_lib.graph.noted_launches import Launch, note_launches
from course_lib.kernel_programs.access_log import AccessLog
from course_lib.kernel_programs.races import Numbers


def launches_of(log: AccessLog, name: str) -> list[Launch]:
    """Return the launches of a log, in order; the memory that a launcher filled counts first, a launch each time.

    An atomic operation reads and writes.
    """
    read: dict[tuple[int, str], list[Numbers]] = defaultdict(list)
    written: dict[tuple[int, str], list[Numbers]] = defaultdict(list)
    for access in log.accesses:
        if access.action != "store":
            read[access.launch, access.tensor].append(access.elements)
        if access.action != "load":
            written[access.launch, access.tensor].append(access.elements)
    bytes_of = [[0, 0] for _ in log.grids]
    for place, found in enumerate((read, written)):
        for (launch, tensor), elements in found.items():
            bytes_of[launch][place] += len(np.unique(np.concatenate(elements))) * log.tensors[tensor].element_size()
    filled = [Launch(f"{name} fills memory", 0, log.tensors[each].nbytes) for each in log.filled]
    return [*filled, *(Launch(name, *each) for each in bytes_of)]


def note_traffic(log: AccessLog, name: str) -> None:
    """Note the launches of a log for `course_lib.graph.cost`; raise `KernelError` if a kernel wrote to an argument."""
    for access in log.accesses:
        if access.action != "load" and access.tensor.startswith("argument"):
            raise KernelError(
                f"`{name}`, line {access.line} of the cell, writes to {access.tensor}, which others read. Write to new "
                "memory, made with `torch.empty`."
            )
    note_launches(launches_of(log, name))
