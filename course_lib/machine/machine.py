"""Execute programs of the toy machine on tensors, and count what they cost."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from course_lib.errors import BackendError
from course_lib.machine.programs import Counts, Instruction, Kernel, Operand, Program, Register, Unit, counts_of


class Machine:
    """Simulate a machine with a few vector registers and a slow memory.

        >>> Machine(registers=8).registers
        8

    Rows do not depend on each other, so the interpreter executes an instruction for all rows at once, as one PyTorch
    operation. It counts the operations of a machine that works row by row. `counts` is the sum over all runs since the
    machine was made, or since `reset`. Tensors may lie on any device; not yet run on CUDA. Raises `BackendError` for
    fewer than 4 registers.
    """

    def __init__(self, registers: int = 8) -> None:
        if not isinstance(registers, int) or registers < 4:
            raise BackendError(
                f"A machine needs at least 4 registers, for three operands and a result; got {registers!r}."
            )
        self.registers = registers
        self.counts = Counts()

    def reset(self) -> None:
        """Set the counts to zero."""
        self.counts = Counts()

    def run(self, program: Program, arguments: Sequence[object]) -> tuple[torch.Tensor, ...]:
        """Execute a program and return its outputs; `arguments` are as `program.inputs`.

        Raises `BackendError` if the arguments do not fit the program, or if the program uses a register that the
        machine does not have, or reads a register or slot that was never written.
        """
        memory = self._memory(program, arguments)
        with torch.no_grad():
            for kernel in program.kernels:
                _Launch(self, program, kernel, memory).run()
        return tuple(access.of(memory[access.buffer]) for access in program.outputs)

    def _memory(self, program: Program, arguments: Sequence[object]) -> dict[str, torch.Tensor]:
        if len(arguments) != len(program.inputs):
            raise BackendError(f"The program takes {len(program.inputs)} arguments and got {len(arguments)}.")
        memory: dict[str, torch.Tensor] = {}
        for name, value in zip(program.inputs, arguments, strict=True):
            if name is None:
                continue
            buffer = program.by_name[name]
            if not isinstance(value, torch.Tensor) or (value.shape, value.dtype) != (buffer.shape, buffer.dtype):
                raise BackendError(f"The program was compiled for {buffer}, and got {_describe(value)}.")
            if value.stride() != buffer.strides and value.numel() > 0:
                raise BackendError(f"{buffer} has strides {buffer.strides}, and the argument has {value.stride()}.")
            memory[name] = value.detach()
        for buffer in program.buffers:
            if buffer.name not in memory:
                memory[buffer.name] = torch.empty_strided(
                    buffer.shape, buffer.strides, dtype=buffer.dtype, device=program.device
                )
        return memory


class _Launch:
    """Execute one kernel."""

    def __init__(self, machine: Machine, program: Program, kernel: Kernel, memory: dict[str, torch.Tensor]) -> None:
        self._machine, self._program, self._kernel, self._memory = machine, program, kernel, memory
        self._registers: dict[Register, torch.Tensor] = {}
        self._slots: dict[int | None, torch.Tensor] = {}

    def run(self) -> None:
        self._machine.counts += replace(Counts(), launches=1)
        for instruction in self._kernel.instructions:
            self._check(instruction)
            result = self._execute(instruction)
            if instruction.into is not None:
                assert result is not None, "an instruction with a destination gives a result"
                self._registers[instruction.into] = result
            self._machine.counts += counts_of(instruction, self._program.by_name)

    def _check(self, instruction: Instruction) -> None:
        for register in (*instruction.reads, *((instruction.into,) if instruction.into else ())):
            if register.number >= self._machine.registers:
                last = self._machine.registers - 1
                raise BackendError(f"`{instruction}` uses {register}, and this machine has r0 to r{last}.")
        empty = [register for register in instruction.reads if register not in self._registers]
        if empty:
            raise BackendError(f"`{instruction}` reads {empty[0]}, into which nothing was written before.")
        if instruction.name == "reload" and instruction.slot not in self._slots:
            raise BackendError(f"`{instruction}` reads a slot into which nothing was spilled before.")

    def _execute(self, instruction: Instruction) -> torch.Tensor | None:
        operands = [self._registers[one] if isinstance(one, Register) else one for one in instruction.operands]
        walks = [access.of(self._memory[access.buffer]) for access in instruction.memory]
        if instruction.unit is Unit.ARITHMETIC:
            return compute(instruction.name, operands, instruction.dtype)
        if instruction.unit is Unit.MATRIX:
            return torch.matmul(*walks)
        if instruction.name == "load":
            return walks[0]
        if instruction.name == "reload":
            return self._slots[instruction.slot]
        value = operands[0]
        assert isinstance(value, torch.Tensor), "what is stored, spilled or reduced is a register"
        if instruction.unit is Unit.REDUCTION:
            return ROWWISE[instruction.name](value.expand(self._kernel.space), self._kernel.columns)
        if instruction.name == "store":
            walks[0].copy_(_fitted(instruction, value, walks[0].shape))
        else:
            self._slots[instruction.slot] = value
        return None


def _fitted(instruction: Instruction, value: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return a value in the shape of the place where it is stored; a value for each column fits no place a row."""
    sizes = shape[len(shape) - value.dim() :]
    if value.dim() > len(shape) or any(have not in (1, size) for have, size in zip(value.shape, sizes, strict=True)):
        raise BackendError(f"`{instruction}` stores a value of shape {list(value.shape)} in {list(shape)}.")
    return value.expand(shape)


def _describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return f"{value!r}, which is no tensor"


def _larger(a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
    return torch.maximum(a, b) if isinstance(b, torch.Tensor) else a.clamp(min=b)


def _smaller(a: torch.Tensor, b: torch.Tensor | float) -> torch.Tensor:
    return torch.minimum(a, b) if isinstance(b, torch.Tensor) else a.clamp(max=b)


COLUMNWISE: Mapping[str, Callable[..., Any]] = {
    "copy": lambda a: a,
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "recip": torch.reciprocal,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "not": torch.logical_not,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "max": _larger,
    "min": _smaller,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "select": torch.where,
}
ROWWISE: Mapping[str, Callable[..., torch.Tensor]] = {
    "sum.row": lambda value, dims: value.sum(dims, keepdim=True),
    "max.row": lambda value, dims: value.amax(dims, keepdim=True),
    "min.row": lambda value, dims: value.amin(dims, keepdim=True),
}


def compute(name: str, operands: Sequence[torch.Tensor | Operand], dtype: torch.dtype | None) -> torch.Tensor:
    """Return the result of an arithmetic instruction, in the dtype that is asked for.

    Raises `BackendError` for operands that it does not take, such as a comparison for `neg`.
    """
    if name == "set":
        return torch.tensor(operands[0], dtype=dtype)
    try:
        value: torch.Tensor = COLUMNWISE[name](*operands)
    except (RuntimeError, TypeError) as error:  # neg of a comparison, and of a number
        raise BackendError(f"`{name}` does not take these operands: {error}") from None
    return value if dtype is None else value.to(dtype)
