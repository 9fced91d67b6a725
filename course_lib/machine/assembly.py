"""Make a program of the toy machine from rows of plain data, such as a compiler of one's own writes.

A *region* is what one kernel is to compute, as plain data. Its values have the shape of its space; a smaller input is
repeated along the dimensions that it lacks, as PyTorch broadcasts it:

    {"registers": 4, "space": [6, 8],
     "inputs": {"x": [[6, 8], [8, 1]], "bias": [[8], [1]]},     # shape and strides of each
     "nodes": [["t", "add", ["x", "bias"]], ["m", "sum.row", ["t"]]],
     "outputs": {"m": [[6, 1], [1, 1]]}}
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.errors import BackendError
from course_lib.machine.programs import (
    FORMS,
    Access,
    Buffer,
    Instruction,
    Kernel,
    Operand,
    Program,
    Register,
    Unit,
    whole,
)

ROWS = {
    "load": '["load", register, input, strides]',
    "store": '["store", output, strides, register]',
    "spill": '["spill", slot, register]',
    "reload": '["reload", register, slot]',
}
"""The rows of instructions that read or write memory; other rows are name, register of the result, operands."""
COMPUTES = tuple(
    name
    for name, form in FORMS.items()
    if form.unit in (Unit.ARITHMETIC, Unit.REDUCTION) and name not in ("set", "select")
)
LARGEST = 2**53
Region = Mapping[str, Any]


def assemble(region: Region, rows: Sequence[Sequence[Any]], *, dtype: torch.dtype = torch.float32) -> Program:
    """Return the program of one kernel over the region's space that consists of these instructions.

        >>> region = {"space": [2, 3], "inputs": {"x": [[2, 3], [3, 1]]}, "outputs": {"y": [[2, 3], [3, 1]]}}
        >>> rows = [["load", "r0", "x", [3, 1]], ["mul", "r0", "r0", 2], ["store", "y", [3, 1], "r0"]]
        >>> print(assemble(region, rows))
        program(x: float32[2, 3])
        kernel over [2] rows of [3]
            r0 = load x[2×3 by 3,1]
            r0 = mul r0, 2
            store y[2×3 by 3,1] = r0
        return y[2×3 by 3,1]

    An access has one stride for each dimension of the space; it is 0 where a buffer is repeated, or is written once.
    Raises `BackendError` for a row that is no instruction, or that leaves the memory of its buffer. Registers are
    compared with those of a machine when it runs the program.
    """
    return _Assembly(tuple(region["space"]), _buffers(region["inputs"], dtype), _buffers(region["outputs"], dtype)).of(
        rows
    )


def _buffers(layouts: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Buffer]:
    return {name: Buffer(name, tuple(shape), tuple(strides), dtype) for name, (shape, strides) in layouts.items()}


@dataclass(frozen=True)
class _Assembly:
    space: tuple[int, ...]
    inputs: Mapping[str, Buffer]
    outputs: Mapping[str, Buffer]

    def of(self, rows: Sequence[Sequence[Any]]) -> Program:
        kernel = Kernel(self.space, (len(self.space) - 1,), tuple(self._instruction(row) for row in rows))
        buffers = (*self.inputs.values(), *self.outputs.values())
        return Program(buffers, tuple(self.inputs), tuple(map(whole, self.outputs.values())), (kernel,))

    def _instruction(self, row: Sequence[Any]) -> Instruction:
        match row:
            case ["load", register, str(name), [*strides]] if name in self.inputs:
                return Instruction("load", _register(register, row), (), (self._access(self.inputs[name], strides),))
            case ["store", str(name), [*strides], register] if name in self.outputs:
                access = self._access(self.outputs[name], strides)
                return Instruction("store", None, (_register(register, row),), (access,))
            case ["spill", slot, register]:
                return Instruction("spill", None, (_register(register, row),), slot=_slot(slot, row))
            case ["reload", register, slot]:
                return Instruction("reload", _register(register, row), slot=_slot(slot, row))
            case [str(name), register, first, *others] if name in COMPUTES and len(others) == FORMS[name].operands - 1:
                operands = (_register(first, row), *(_operand(each, row) for each in others))
                return Instruction(name, _register(register, row), operands)
        raise BackendError(self._objection(row))

    def _objection(self, row: Sequence[Any]) -> str:
        name = row[0] if row and isinstance(row[0], str) else ""
        if name in ("load", "store"):
            buffers = self.inputs if name == "load" else self.outputs
            return f"The row {row!r:.120} is no {name}; expected {ROWS[name]}, and the region has {', '.join(buffers)}."
        if name in ROWS:
            return f"The row {row!r:.120} is no {name}; expected {ROWS[name]}."
        if name in COMPUTES:
            return (
                f"The row {row!r:.120} has to be [{name!r}, register of the result, {FORMS[name].operands} operands]."
            )
        return f"The row {row!r:.120} names no instruction. There are {', '.join((*ROWS, *COMPUTES))}."

    def _access(self, buffer: Buffer, strides: Sequence[Any]) -> Access:
        """Return the access whose element (i, j, …) is at i * strides[0] + j * strides[1] + …."""
        if len(strides) != len(self.space) or any(type(step) is not int or step < 0 for step in strides):
            raise BackendError(
                f"The access to {buffer.name} has strides {strides!r:.60}; expected {len(self.space)} whole numbers "
                "that are not negative, one for each dimension of the space."
            )
        shape = tuple(size if step else 1 for size, step in zip(self.space, strides, strict=True))
        last = _last(shape, strides)
        most = _last(buffer.shape, buffer.strides)
        if last > most:
            raise BackendError(
                f"With strides {strides} an access to {buffer} reaches element {last} of its memory; the last one is "
                f"{most}. Use stride 0 where the buffer has no dimension, or one of size 1."
            )
        return Access(buffer.name, shape, tuple(strides))


def _last(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the place of the last element in memory."""
    return sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def _register(value: Any, row: Sequence[Any]) -> Register:
    if not isinstance(value, str) or not re.fullmatch(r"r[0-9]{1,4}", value):
        raise BackendError(f"In the row {row!r:.120}: {value!r:.40} is no register; expected a name such as 'r0'.")
    return Register(int(value[1:]))


def _operand(value: Any, row: Sequence[Any]) -> Operand:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return value
    return _register(value, row)


def _slot(value: Any, row: Sequence[Any]) -> int:
    if type(value) is not int or not 0 <= value < LARGEST:
        raise BackendError(f"In the row {row!r:.120}: {value!r:.40} is no slot; expected a whole number from 0 on.")
    return value
