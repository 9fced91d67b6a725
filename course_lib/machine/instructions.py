"""The instruction set: one record for all instructions, and a table of what each of them takes.

A kernel works through its space (of shape rows × columns, so to say) one row after the other. A register holds one
value for each column of the row that is being worked on, or one value for the whole row.
"""

from dataclasses import dataclass
from enum import Enum

import torch

from course_lib.errors import BackendError
from course_lib.machine.memory import Access


@dataclass(frozen=True, order=True)
class Register:
    """A vector register, by number."""

    number: int

    def __str__(self) -> str:
        return f"r{self.number}"


Immediate = bool | int | float
Operand = Register | Immediate


class Unit(Enum):
    """The part of the machine that executes an instruction."""

    MEMORY = "memory"
    ARITHMETIC = "arithmetic"  # column by column
    REDUCTION = "reduction"  # all columns of a row to one value
    MATRIX = "matrix"
    SCRATCH = "scratch"  # where values wait for which there was no register


@dataclass(frozen=True)
class Form:
    """What an instruction takes."""

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
    """One instruction: `into` receives what `name` makes of operands and of memory.

        >>> print(Instruction("mul", Register(2), (Register(0), 0.5), dtype=torch.float32))
        r2 = mul r0, 0.5

    `dtype` is the type of the result. "spill" and "reload" name a slot of scratch memory. Before registers are
    allocated, each result has a register number of its own.
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
        """The part of the machine that executes this."""
        return FORMS[self.name].unit

    @property
    def reads(self) -> tuple[Register, ...]:
        """The registers among the operands, each once."""
        return tuple(dict.fromkeys(operand for operand in self.operands if isinstance(operand, Register)))

    def __str__(self) -> str:
        places = [f"slot {self.slot}"] if self.slot is not None else []
        given = ", ".join([*map(str, self.operands), *map(str, self.memory), *places])
        if self.name == "store":
            return f"store {self.memory[0]} = {self.operands[0]}"
        return f"{self.into} = {self.name} {given}" if self.into is not None else f"{self.name} {given}"
