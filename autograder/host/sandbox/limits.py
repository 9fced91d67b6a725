"""What a worker may use, and how it ended."""

from dataclasses import dataclass, fields
from typing import Literal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Reason = Literal["exited", "timed_out", "out_of_memory", "killed"]


@dataclass(frozen=True)
class Limits:
    """How much one worker may use before it is stopped.

    >>> Limits(wall_s=20.0, memory_bytes=2 << 30).processes
    128
    """

    wall_s: float = 60.0
    """From start to end on the host's clock, the start of the interpreter included."""
    memory_bytes: int = 4 * GIB
    """All processes together, and the data of each one."""
    processes: int = 128
    """Processes and threads together; importing torch and one compiler need about 64."""
    tmp_bytes: int = 1 * GIB
    """Of /tmp; /dev/shm has a quarter of it on top. Both are memory and count as such."""
    file_bytes: int = 256 * MIB
    """Of one file. A precompiled header of torch.compile has 148 MiB."""
    output_bytes: int = 64 * KIB
    """Of stdout and stderr together that are kept; the rest is read and dropped."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"Limits.{field.name} is {getattr(self, field.name)!r}; it must be above 0.")

    @property
    def shm_bytes(self) -> int:
        """Size of /dev/shm."""
        return max(self.tmp_bytes // 4, MIB)


@dataclass(frozen=True)
class Ending:
    """How a worker ended, and the beginning of what it printed."""

    reason: Reason
    exit_code: int | None
    """Of the interpreter, negative for a signal; None if the host ended it."""
    output: str
    """Up to `Limits.output_bytes` of stdout and stderr, interleaved; never evidence of anything."""
    detail: str = ""
    """One sentence on why, where the reason alone does not say it."""
