"""What running a program costs, counted instead of timed."""

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.machine.instructions import Instruction
from course_lib.machine.memory import Access, Buffer


@dataclass(frozen=True)
class Counts:
    """How often the machine did what costs time. The sum of two has the larger number of registers."""

    launches: int = 0
    loads: int = 0
    stores: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    spills: int = 0
    reloads: int = 0
    registers: int = 0  # the most that one kernel touches

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written together."""
        return self.bytes_read + self.bytes_written

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.launches + other.launches,
            self.loads + other.loads,
            self.stores + other.stores,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.spills + other.spills,
            self.reloads + other.reloads,
            max(self.registers, other.registers),
        )


def counts_of(instruction: Instruction, buffers: Mapping[str, Buffer]) -> Counts:
    """Return what one instruction costs when it has been executed for all rows of its kernel.

    A walk that meets an element many times reads it from memory once. Scratch memory is counted in spills and
    reloads, and not in bytes. Writing register 5 means that at least six registers were in use.
    """
    moved = sum(_bytes(access, buffers) for access in instruction.memory)
    stores = instruction.name == "store"
    return Counts(
        loads=0 if stores else len(instruction.memory),
        stores=int(stores),
        bytes_read=0 if stores else moved,
        bytes_written=moved if stores else 0,
        spills=int(instruction.name == "spill"),
        reloads=int(instruction.name == "reload"),
        registers=instruction.into.number + 1 if instruction.into is not None else 0,
    )


def _bytes(access: Access, buffers: Mapping[str, Buffer]) -> int:
    return access.distinct_elements * buffers[access.buffer].dtype.itemsize
