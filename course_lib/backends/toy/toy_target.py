"""The toy machine as a target: write the program of a part, and run it.

Each value is loaded, or computed, just before its first use.
"""

from collections.abc import Sequence

import torch
from torch import fx

from course_lib.backends.support import target_name
from course_lib.backends.target import Executable, Target
from course_lib.backends.toy.instruction_set import (
    INSTRUCTIONS,
    REDUCTIONS,
    SUPPORT,
    Kind,
    kind_of,
    matrices_of,
    number_of,
    operands_of,
)
from course_lib.backends.toy.kernel_groups import Values, Work, group_into_kernels
from course_lib.backends.toy.registers import allocate
from course_lib.backends.toy.views import with_cheap_views
from course_lib.fusion import Objection
from course_lib.machine import Access, Instruction, Kernel, Machine, Operand, Program, Register, whole


class ToyTarget(Target):
    """Compile for a toy machine and run programs on it; `machine.counts` has the counts after a run.

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


def write_program(part: fx.GraphModule, registers: int) -> Program:
    """Return a program for a part whose operators the machine takes and whose nodes have shapes."""
    graph = with_cheap_views(part).graph
    values = Values(graph)
    grouped = group_into_kernels(graph, values)
    stored = _values_for_memory(values, grouped)
    kernels = [
        Kernel(work.space, work.columns or (), allocate(_Emission(work, nodes, values, stored).run(), registers))
        for work, nodes in grouped
        if any(kind_of(node) is not Kind.CONSTANT or node in stored for node in nodes)
    ]
    tensors = [node for node in values.inputs if not _is_number(node)]
    made = [node for node in values.computed if node in stored]
    example = (tensors + made)[0]
    return Program(
        buffers=tuple(values.buffer(node) for node in (*tensors, *made)),
        inputs=tuple(None if _is_number(node) else node.name for node in values.inputs),
        outputs=tuple(values.access(node) for node in values.outputs),
        kernels=tuple(kernels),
        device=str(example.meta["val"].device),
    )


def _values_for_memory(values: Values, grouped: Sequence[tuple[Work, list[fx.Node]]]) -> set[fx.Node]:
    """Return the computed values that must be stored in memory, because a node outside their kernel reads them."""
    kernel = {node: number for number, (_, nodes) in enumerate(grouped) for node in nodes}
    stored = {values.source(node) for node in values.outputs}
    for node in values.computed:
        for operand in node.all_input_nodes:
            source = values.source(operand)
            same_kernel = source is operand and kernel.get(operand) == kernel[node]
            constant = source is operand and values.is_computed(operand) and kind_of(operand) is Kind.CONSTANT
            if not same_kernel and (not constant or kind_of(node) is Kind.MATMUL):
                stored.add(source)
    return stored & set(values.computed)


class _Emission:
    """One kernel, with a register of its own for each value."""

    def __init__(self, work: Work, nodes: Sequence[fx.Node], values: Values, stored: set[fx.Node]) -> None:
        self._work, self._nodes, self._values, self._stored = work, nodes, values, stored
        self._written: list[Instruction] = []
        self._computed: dict[fx.Node, Register] = {}
        self._loaded: dict[Access, Register] = {}

    def run(self) -> list[Instruction]:
        for node in sorted(self._nodes, key=lambda node: kind_of(node) is not Kind.MATMUL):  # the product comes first
            self._computed[node] = self._compute(node)
            if node in self._stored:
                access = _broadcast(whole(self._values.buffer(node)), len(self._work.space))
                self._written.append(Instruction("store", operands=(self._computed[node],), memory=(access,)))
        return self._written

    def _compute(self, node: fx.Node) -> Register:
        kind, dtype = kind_of(node), node.meta["val"].dtype
        if kind is Kind.CONSTANT:
            return self._write("set", operands=(number_of(node),), dtype=dtype)
        if kind is Kind.MATMUL:
            left, right = (self._values.access(operand) for operand in matrices_of(node))
            return self._write("matmul", memory=(left, right), dtype=dtype)
        if kind is Kind.REDUCTION:
            return self._write(REDUCTIONS[target_name(node)], operands=(self._register(node.all_input_nodes[0]),))
        return self._write(INSTRUCTIONS[target_name(node)], operands=self._operands(node), dtype=dtype)

    def _operands(self, node: fx.Node) -> tuple[Operand, ...]:
        """Return registers, and at most one number, which is never the first operand."""
        given = operands_of(node)
        numbers = any(not isinstance(value, fx.Node) for value in given)
        operands: list[Operand] = []
        for value in given:
            if not isinstance(value, fx.Node):
                operands.append(value)
            elif operands and not numbers and self._is_constant(value):
                operands.append(number_of(value))
                numbers = True
            else:
                operands.append(self._register(value))
        return tuple(operands)

    def _register(self, node: fx.Node) -> Register:
        """Return the register that holds a value, and load it there if it is not in one yet."""
        if node in self._computed:
            return self._computed[node]
        if self._is_constant(node):
            self._computed[node] = self._compute(node)
            return self._computed[node]
        access = _broadcast(self._values.access(node), len(self._work.space))
        if access not in self._loaded:
            self._loaded[access] = self._write("load", memory=(access,), dtype=node.meta["val"].dtype)
        return self._loaded[access]

    def _is_constant(self, node: fx.Node) -> bool:
        return self._values.is_computed(node) and kind_of(node) is Kind.CONSTANT

    def _write(
        self,
        name: str,
        *,
        operands: tuple[Operand, ...] = (),
        memory: tuple[Access, ...] = (),
        dtype: torch.dtype | None = None,
    ) -> Register:
        into = Register(len(self._written))
        self._written.append(Instruction(name, into, operands, memory, dtype))
        return into


def _broadcast(access: Access, rank: int) -> Access:
    """Return the same access with `rank` dimensions; dimensions of size 1 are repeated."""
    missing = (1,) * (rank - len(access.shape))
    strides = (0 if size == 1 else stride for size, stride in zip(access.shape, access.strides, strict=True))
    return Access(access.buffer, (*missing, *access.shape), (*(0 for _ in missing), *strides), access.offset)


def _is_number(node: fx.Node) -> bool:
    return not isinstance(node.meta["val"], torch.Tensor)
