"""Give each value of a kernel one of a few registers, and spill values to scratch memory if none is free.

This is a linear scan: the instructions are visited once, in order. If no register is free, the value with the latest
next use is spilled (Belady, 1966). It is written to scratch memory at most once, because a value never changes.
"""

from collections.abc import Sequence

from course_lib.errors import BackendError
from course_lib.machine import Instruction, Register

NEVER = 1 << 60


def allocate(instructions: Sequence[Instruction], registers: int) -> tuple[Instruction, ...]:
    """Return the same computation with at most `registers` registers.

    In the given instructions, each result has its own register, and their number is not limited.

        >>> from course_lib.machine import Access
        >>> load = [Instruction("load", Register(n), memory=(Access(name, (8,), (1,)),)) for n, name in enumerate("ab")]
        >>> add = Instruction("add", Register(2), (Register(0), Register(1)))
        >>> print(*allocate([*load, add], registers=4), sep="; ")
        r0 = load a[8 by 1]; r1 = load b[8 by 1]; r0 = add r0, r1
    """
    return _Scan(instructions, registers).run()


class _Scan:
    def __init__(self, instructions: Sequence[Instruction], registers: int) -> None:
        self._instructions = instructions
        self._free = list(range(registers - 1, -1, -1))  # the lowest number is taken first
        self._home: dict[Register, int] = {}  # value -> register that holds it
        self._slots: dict[Register, int] = {}  # value -> slot that holds it
        self._uses: dict[Register, list[int]] = {}  # value -> positions that read it, the next one last
        self._written: list[Instruction] = []
        self._reads = [instruction.reads for instruction in instructions]
        for position in range(len(instructions) - 1, -1, -1):
            for value in self._reads[position]:
                self._uses.setdefault(value, []).append(position)

    def run(self) -> tuple[Instruction, ...]:
        for instruction, reads in zip(self._instructions, self._reads, strict=True):
            needed = set(reads)
            for value in reads:
                if value not in self._home:
                    self._home[value] = self._take(needed)
                    self._write(Instruction("reload", Register(self._home[value]), slot=self._slots[value]))
            operands = tuple(
                Register(self._home[operand]) if isinstance(operand, Register) else operand
                for operand in instruction.operands
            )
            for value in needed:
                self._uses[value].pop()
                if not self._uses[value]:
                    self._free.append(self._home.pop(value))
            self._free.sort(reverse=True)
            into = None
            if instruction.into is not None:
                self._home[instruction.into] = self._take(needed)
                into = Register(self._home[instruction.into])
            same = instruction.memory, instruction.dtype, instruction.slot
            self._write(Instruction(instruction.name, into, operands, *same))  # dataclasses.replace takes twice as long
            if instruction.into is not None and instruction.into not in self._uses:
                self._free.append(self._home.pop(instruction.into))  # no instruction reads it
        return tuple(self._written)

    def _take(self, needed: set[Register]) -> int:
        """Return a free register; if there is none, spill the value with the latest next use that is not needed now."""
        if self._free:
            return self._free.pop()
        others = [value for value in self._home if value not in needed]
        if not others:
            raise BackendError("An instruction needs more operands at once than the machine has registers.")
        loser = max(others, key=lambda value: self._uses[value][-1] if self._uses.get(value) else NEVER)
        register = self._home.pop(loser)
        if loser not in self._slots:
            self._slots[loser] = len(self._slots)
            self._write(Instruction("spill", operands=(Register(register),), slot=self._slots[loser]))
        return register

    def _write(self, instruction: Instruction) -> None:
        self._written.append(instruction)
