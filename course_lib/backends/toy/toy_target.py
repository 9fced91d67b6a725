"""The toy machine as a target of the kit."""

from collections.abc import Sequence

import torch
from torch import fx

from course_lib.backends.target import Executable, Target
from course_lib.backends.toy.emission import write_program
from course_lib.backends.toy.instruction_set import SUPPORT
from course_lib.fusion import Objection
from course_lib.machine import Machine, Program


class ToyTarget(Target):
    """Compiles for a toy machine, on which everything then runs: read `machine.counts` after a run.

    >>> ToyTarget(Machine(registers=4)).name
    'toy machine, 4 registers'
    """

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = Machine() if machine is None else machine
        self.name = f"toy machine, {self.machine.registers} registers"

    def objection(self, node: fx.Node) -> Objection | None:
        """Return why the machine has no instruction for a node, or None if it has one."""
        return SUPPORT.objection(node)

    def compile(self, part: fx.GraphModule) -> "ToyExecutable":
        """Return a part as a program."""
        return ToyExecutable(self.machine, write_program(part, self.machine.registers))


class ToyExecutable(Executable):
    """A program and the machine that runs it."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine, self.program = machine, program
        counts = program.counts
        self.launches, self.bytes_moved = counts.launches, counts.bytes_moved
        self.remark = f"{counts.registers} registers, {counts.spills} spills"

    def __call__(self, *inputs: object) -> Sequence[torch.Tensor]:
        """Run the program."""
        return self.machine.run(self.program, inputs)

    def __repr__(self) -> str:
        return str(self.program)
