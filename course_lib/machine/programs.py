"""Define kernels and programs of the toy machine, and count what running them costs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from course_lib.errors import BackendError
from course_lib.machine.instructions import Access, Buffer, Instruction


@dataclass(frozen=True)
class Counts:
    """Count the events that cost time. The sum of two counts has the larger number of registers."""

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
        """Return the bytes read and written together."""
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


@dataclass(frozen=True)
class Kernel:
    """Hold the instructions of one launch, which are executed for each row of its space."""

    space: tuple[int, ...]
    columns: tuple[int, ...]  # the dimensions of the space that make a row; reductions run over them
    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        rows = [size for dim, size in enumerate(self.space) if dim not in self.columns]
        over = f"{rows} rows of {[self.space[dim] for dim in self.columns]}" if self.columns else f"{list(self.space)}"
        return "\n".join([f"kernel over {over}", *(f"    {instruction}" for instruction in self.instructions)])


@dataclass(frozen=True, repr=False)
class Program:
    """Hold kernels and their buffers, with those that are inputs and outputs.

    Printing one shows its disassembly.
    """

    buffers: tuple[Buffer, ...]
    inputs: tuple[str | None, ...]  # one for each argument; None for a number, which is already in the instructions
    outputs: tuple[Access, ...]
    kernels: tuple[Kernel, ...]
    device: str = "cpu"  # of the memory that the program needs beside its inputs

    def __post_init__(self) -> None:
        known = set(self.by_name)
        if len(known) != len(self.buffers):
            raise BackendError(
                f"Each buffer needs a name of its own; the program has {[b.name for b in self.buffers]}."
            )
        used = [access for kernel in self.kernels for step in kernel.instructions for access in step.memory]
        strange = {access.buffer for access in (*used, *self.outputs)} | {name for name in self.inputs if name}
        if strange - known:
            raise BackendError(f"The program uses {sorted(strange - known)}, which is none of its buffers.")

    @cached_property
    def by_name(self) -> Mapping[str, Buffer]:
        """Return the buffers by their names."""
        return {buffer.name: buffer for buffer in self.buffers}

    @cached_property
    def counts(self) -> Counts:
        """Return the cost of one run; it is known before the run, since programs have no branches."""
        total = Counts()
        for kernel in self.kernels:
            total += replace(Counts(), launches=1)
            for instruction in kernel.instructions:
                total += counts_of(instruction, self.by_name)
        return total

    def __str__(self) -> str:
        given = ", ".join(str(self.by_name[name]) for name in self.inputs if name)
        returned = ", ".join(map(str, self.outputs))
        return "\n".join([f"program({given})", *map(str, self.kernels), f"return {returned}"])

    __repr__ = __str__
