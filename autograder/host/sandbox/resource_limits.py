"""The limits of one worker, and how it ended."""

from dataclasses import dataclass, fields
from typing import Literal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Reason = Literal["exited", "timed_out", "out_of_memory", "killed"]


@dataclass(frozen=True)
class Limits:
    """The resources that one worker may use before it is stopped.

    >>> Limits(wall_s=20.0, memory_bytes=2 << 30).processes
    128
    """

    wall_s: float = 60.0
    """On the host's clock, including the start of the interpreter."""
    memory_bytes: int = 4 * GIB
    """For all processes together, and for the data of each one."""
    processes: int = 128
    """Processes and threads together; importing torch and one compiler need about 64."""
    tmp_bytes: int = 1 * GIB
    """Size of /tmp; /dev/shm has a quarter of it in addition. Both are held in memory and count as memory."""
    file_bytes: int = 256 * MIB
    """Size of one file. A precompiled header of torch.compile has 148 MiB."""
    output_bytes: int = 64 * KIB
    """How much of stdout and stderr together is kept; the rest is read and dropped."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"Limits.{field.name} is {getattr(self, field.name)!r}; it must be above 0.")

    @property
    def shm_bytes(self) -> int:
        """Return the size of /dev/shm."""
        return max(self.tmp_bytes // 4, MIB)


@dataclass(frozen=True)
class Ending:
    """How a worker ended, and the beginning of its output."""

    reason: Reason
    exit_code: int | None
    """The interpreter's exit code, negative for a signal; None if the host ended it."""
    output: str
    """Up to `Limits.output_bytes` of stdout and stderr, interleaved; the worker can write anything there."""
    detail: str = ""
    """One sentence about the cause, if `reason` alone does not give it."""
