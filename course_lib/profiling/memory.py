"""How much memory a program takes at its height, from the allocations that torch.profiler saw."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CPU, CUDA = 0, 1  # how the timeline writes the type of a device


@dataclass(frozen=True)
class MemoryUse:
    """Memory of tensors, in bytes beyond what was allocated when the program began."""

    peak_bytes: int
    left_bytes: int  # still allocated at the end
    allocated_bytes: int  # all allocations of one run together
    allocations: int  # in one run

    def __str__(self) -> str:
        heights = (
            f"{format_bytes(self.peak_bytes)} of memory at its height, {format_bytes(self.left_bytes)} left at the end"
        )
        return f"{heights}, {self.allocations} allocations of {format_bytes(self.allocated_bytes)} together"


def memory_from_events(events: Iterable[Mapping[str, Any]], *, runs: int = 1, on_cuda: bool = False) -> MemoryUse:
    """Add up allocations and releases of so many equal runs, in the order of the timeline.

        >>> memory_from_events([{"Bytes": size, "Device Type": 0} for size in (8, 4, -8)])
        MemoryUse(peak_bytes=12, left_bytes=4, allocated_bytes=12, allocations=2)

    On CUDA only the device's memory counts. Releases of what was allocated before the beginning lower the level, not
    the height.
    """
    device = CUDA if on_cuda else CPU
    changes = [int(event["Bytes"]) for event in events if event["Device Type"] == device]
    level = peak = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    allocations = [change for change in changes if change > 0]
    return MemoryUse(peak, level, sum(allocations) // runs, len(allocations) // runs)


def format_bytes(size: float) -> str:
    """Return a size in the unit in which it reads best.

    >>> format_bytes(0), format_bytes(1536), format_bytes(3 << 30), format_bytes(-2048)
    ('0 B', '1.5 KiB', '3 GiB', '-2 KiB')
    """
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size) >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"
