"""Define programs of the toy machine: buffers, instructions, kernels, and what running them costs.

A kernel works through its space, of shape rows × columns, one row after the other. A register holds one value for each
column of the current row, or one value for the whole row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property

import torch

from course_lib.errors import BackendError


@dataclass(frozen=True)
class Buffer:
    """Describe a named buffer: an input, an output, or an intermediate result between two launches."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}{list(self.shape)}"


@dataclass(frozen=True)
class Access:
    """Describe an access to a buffer: element (i, j, …) is the one at `offset + i * strides[0] + j * strides[1] + …`.

        >>> str(Access("x", shape=(4, 3), strides=(1, 4)))
        'x[4×3 by 1,4]'

    So a buffer can be read as it is, transposed, in part, or repeatedly (with a stride of 0), and views of a tensor
    need no instructions. Offset and strides count elements. Raises `BackendError` unless there is one stride for each
    size.
    """

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise BackendError(f"An access has one stride for each size; it got {self.shape} and {self.strides}.")

    @property
    def distinct_elements(self) -> int:
        """Return the number of distinct elements that are accessed."""
        return math.prod(size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0)

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the access that reads the memory of `tensor` with its strides."""
        return tensor.as_strided(self.shape, self.strides, tensor.storage_offset() + self.offset)

    def __str__(self) -> str:
        if not self.shape:
            return self.buffer + (f" +{self.offset}" if self.offset else "")
        sizes, steps = "×".join(map(str, self.shape)), ",".join(map(str, self.strides))
        return f"{self.buffer}[{sizes} by {steps}{f' +{self.offset}' if self.offset else ''}]"


def whole(buffer: Buffer) -> Access:
    """Return the access to every element of a buffer, in the order of its shape."""
    return Access(buffer.name, buffer.shape, buffer.strides)


@dataclass(frozen=True, order=True)
class Register:
    """Name a vector register by its number."""

    number: int

    def __hash__(self) -> int:  # a third of the time of the usual one: allocation hashes registers above all
        return self.number

    def __str__(self) -> str:
        return f"r{self.number}"


Immediate = bool | int | float
Operand = Register | Immediate


class Unit(Enum):
    """Name the part of the machine that executes an instruction."""

    MEMORY = "memory"
    ARITHMETIC = "arithmetic"  # column by column
    REDUCTION = "reduction"  # all columns of a row to one value
    MATRIX = "matrix"
    SCRATCH = "scratch"  # scratch memory for values without a register


@dataclass(frozen=True)
class Form:
    """Describe the operands that an instruction takes."""

    unit: Unit
    operands: int = 0
    accesses: int = 0
    has_result: bool = True


ARITHMETIC = {
    **dict.fromkeys("copy neg abs sign exp log sqrt rsqrt recip tanh sigmoid erf sin cos not".split(), 1),  # noqa: SIM905
    **dict.fromkeys("add sub mul div pow max min lt le gt ge eq ne and or".split(), 2),  # noqa: SIM905
    "set": 1,
    "select": 3,
}
FORMS: dict[str, Form] = {
    "load": Form(Unit.MEMORY, accesses=1),
    "store": Form(Unit.MEMORY, operands=1, accesses=1, has_result=False),
    **{name: Form(Unit.ARITHMETIC, operands) for name, operands in ARITHMETIC.items()},
    **{f"{name}.row": Form(Unit.REDUCTION, 1) for name in ("sum", "max", "min")},
    "matmul": Form(Unit.MATRIX, accesses=2),
    "spill": Form(Unit.SCRATCH, operands=1, has_result=False),
    "reload": Form(Unit.SCRATCH),
}


@dataclass(frozen=True)
class Instruction:
    """Hold one instruction: `into` receives the result of `name` on the operands and on memory.

        >>> print(Instruction("mul", Register(2), (Register(0), 0.5), dtype=torch.float32))
        r2 = mul r0, 0.5

    `dtype` is the type of the result. "spill" and "reload" name a slot of scratch memory. Before registers are
    allocated, each result has a register number of its own. Raises `BackendError` for an unknown name, and for
    operands, accesses or a result that the instruction does not have.
    """

    name: str
    into: Register | None = None
    operands: tuple[Operand, ...] = ()
    memory: tuple[Access, ...] = ()
    dtype: torch.dtype | None = None
    slot: int | None = None

    def __post_init__(self) -> None:
        form = FORMS.get(self.name)
        if form is None:
            raise BackendError(f"The machine has no instruction {self.name!r}; it has {', '.join(sorted(FORMS))}.")
        given = (len(self.operands), len(self.memory), self.into is not None)
        if given != (form.operands, form.accesses, form.has_result):
            raise BackendError(
                f"{self.name} takes {form.operands} operands and {form.accesses} accesses and gives "
                f"{'a' if form.has_result else 'no'} result; it got {given[0]} and {given[1]}, and {self.into}."
            )

    @property
    def unit(self) -> Unit:
        """Return the part of the machine that executes this instruction."""
        return FORMS[self.name].unit

    @property
    def reads(self) -> tuple[Register, ...]:
        """Return the registers among the operands, each once."""
        return tuple(dict.fromkeys([operand for operand in self.operands if isinstance(operand, Register)]))

    def __str__(self) -> str:
        places = [f"slot {self.slot}"] if self.slot is not None else []
        given = ", ".join([*map(str, self.operands), *map(str, self.memory), *places])
        if self.name == "store":
            return f"store {self.memory[0]} = {self.operands[0]}"
        return f"{self.into} = {self.name} {given}" if self.into is not None else f"{self.name} {given}"


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
        sums = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        return Counts(**{**sums, "registers": max(self.registers, other.registers)})


def counts_of(instruction: Instruction, buffers: Mapping[str, Buffer]) -> Counts:
    """Return the cost of one instruction, executed for all rows of its kernel.

    An access that repeats an element reads it from memory once. Scratch memory is counted in spills and reloads, and
    not in bytes. Writing register 5 means that at least six registers were in use.
    """
    moved = sum(access.distinct_elements * buffers[access.buffer].dtype.itemsize for access in instruction.memory)
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

    Printing one shows its disassembly. Raises `BackendError` if two buffers have one name, and for an access, input or
    output that names no buffer.
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
