"""Values get registers, and come back from scratch memory as they were."""

import random

import pytest
import torch

from course_lib.backends.toy import allocate
from course_lib.errors import BackendError
from course_lib.machine import Buffer, Instruction, Kernel, Machine, Program, Register, whole

SIZE = 5
OUT = Buffer("out", (SIZE,), (1,), torch.float64)


def random_instructions(seed: int, inputs: int = 7, steps: int = 30) -> list[Instruction]:
    """Straight-line code in which old values are read again, each result in a register of its own."""
    draw = random.Random(seed)
    code = [Instruction("load", Register(n), memory=(whole(buffer),)) for n, buffer in enumerate(buffers(inputs))]
    for number in range(inputs, inputs + steps):
        name, count = draw.choice([("add", 2), ("mul", 2), ("tanh", 1), ("max", 2)])
        code.append(Instruction(name, Register(number), tuple(Register(draw.randrange(number)) for _ in range(count))))
    return [*code, Instruction("store", operands=(Register(inputs + steps - 1),), memory=(whole(OUT),))]


def buffers(count: int) -> list[Buffer]:
    return [Buffer(f"x{number}", (SIZE,), (1,), torch.float64) for number in range(count)]


def program(code: list[Instruction]) -> Program:
    inputs = buffers(7)
    kernel = Kernel((SIZE,), (), tuple(code))
    return Program((*inputs, OUT), tuple(buffer.name for buffer in inputs), (whole(OUT),), (kernel,))


@pytest.mark.parametrize("seed", range(20))
def test_fewer_registers_give_the_same_values_and_more_spills(seed):
    code = random_instructions(seed)
    inputs = [torch.randn(SIZE, dtype=torch.float64) for _ in range(7)]
    (expected,) = Machine(len(code)).run(program(code), inputs)
    spills = []
    for registers in (4, 6, 8, len(code)):
        machine = Machine(registers)
        (actual,) = machine.run(program(list(allocate(code, registers))), inputs)
        assert torch.equal(actual, expected)
        assert machine.counts.registers <= registers
        spills.append(machine.counts.spills)
    assert spills == sorted(spills, reverse=True)
    assert spills[-1] == 0


def test_a_value_is_spilled_once_and_reloaded_when_it_is_needed():
    code = random_instructions(3)
    short = allocate(code, 4)
    slots = [instruction.slot for instruction in short if instruction.name == "spill"]
    assert slots
    assert len(slots) == len(set(slots))
    assert {instruction.slot for instruction in short if instruction.name == "reload"} <= set(slots)


def test_the_value_that_is_needed_last_gives_up_its_register():
    a, b, c, d, *results = (Register(number) for number in range(7))
    loads = [Instruction("load", r, memory=(whole(x),)) for r, x in zip((a, b, c, d), buffers(4), strict=True)]
    adds = [Instruction("add", into, pair) for into, pair in zip(results, ((c, d), (b, c), (a, b)), strict=True)]
    spilled = [str(instruction) for instruction in allocate([*loads, *adds], 3) if instruction.name == "spill"]
    assert spilled[0] == "spill r0, slot 0"  # a, which is loaded first and read last


def test_too_few_registers_for_one_instruction_are_refused():
    loads = [Instruction("load", Register(n), memory=(whole(x),)) for n, x in enumerate(buffers(3))]
    choose = Instruction("select", Register(3), (Register(0), Register(1), Register(2)))
    with pytest.raises(BackendError, match="more operands at once"):
        allocate([*loads, choose], 2)
