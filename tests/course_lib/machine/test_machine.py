"""The machine does what a program says, counts it, and refuses what no machine could do."""

import dataclasses

import pytest
import torch

from course_lib.errors import BackendError
from course_lib.machine import Access, Buffer, Instruction, Kernel, Machine, Program, Register, whole

R = [Register(number) for number in range(9)]
X = Buffer("x", (4, 3), (3, 1), torch.float32)
BIAS = Buffer("bias", (3,), (1,), torch.float32)
OUT = Buffer("out", (4, 3), (3, 1), torch.float32)
ROW = Buffer("row", (4, 1), (1, 1), torch.float32)


def program(*instructions: Instruction, columns: tuple[int, ...] = (), output: Buffer = OUT) -> Program:
    kernel = Kernel((4, 3), columns, instructions)
    return Program((X, BIAS, output), ("x", "bias"), (whole(output),), (kernel,))


def load(register: Register, buffer: Buffer) -> Instruction:
    access = Access("bias", (1, 3), (0, 1)) if buffer is BIAS else whole(buffer)
    return Instruction("load", register, memory=(access,), dtype=torch.float32)


def store(register: Register, buffer: Buffer = OUT) -> Instruction:
    return Instruction("store", operands=(register,), memory=(whole(buffer),))


ADD = program(load(R[0], X), load(R[1], BIAS), Instruction("add", R[0], (R[0], R[1])), store(R[0]))
# Each text is part of the sentence that a wrong program gets.
WRONG = {
    "reads r2, into which nothing was written": program(load(R[0], X), Instruction("exp", R[1], (R[2],)), store(R[1])),
    "this machine has r0 to r3": program(load(R[4], X), store(R[4])),
    "nothing was spilled": program(Instruction("reload", R[0], slot=0), store(R[0])),
    "`neg` does not take": program(
        load(R[0], X), Instruction("lt", R[1], (R[0], 0)), Instruction("neg", R[1], (R[1],)), store(R[1])
    ),
    "`or` does not take": program(load(R[0], X), Instruction("or", R[1], (R[0], 1)), store(R[1])),
}


def test_a_program_computes_what_it_says():
    x, bias = torch.randn(4, 3), torch.randn(3)
    (result,) = Machine().run(ADD, (x, bias))
    assert torch.equal(result, x + bias)


def test_the_machine_counts_launches_instructions_and_distinct_bytes():
    machine = Machine()
    machine.run(ADD, (torch.randn(4, 3), torch.randn(3)))
    counts = machine.counts
    assert (counts.launches, counts.loads, counts.stores, counts.registers) == (1, 2, 1, 2)
    assert (counts.bytes_read, counts.bytes_written) == (4 * (12 + 3), 4 * 12)  # the bias is read once, not once a row
    assert counts == ADD.counts
    machine.run(ADD, (torch.randn(4, 3), torch.randn(3)))
    assert machine.counts.launches == 2
    machine.reset()
    assert machine.counts.launches == 0


def test_an_element_that_a_walk_meets_again_is_read_from_memory_once():
    repeated = Access("bias", (4, 3), (0, 1))
    assert repeated.distinct_elements == 3
    adding = program(load(R[0], X), Instruction("load", R[1], memory=(repeated,)), store(R[1]))
    assert adding.counts.bytes_read == ADD.counts.bytes_read
    bias = torch.randn(3)
    assert torch.equal(Machine().run(adding, (torch.zeros(4, 3), bias))[0], bias.expand(4, 3))


def test_a_reduction_runs_over_the_columns_of_each_row():
    x = torch.randn(4, 3)
    summing = program(load(R[0], X), Instruction("sum.row", R[1], (R[0],)), store(R[1], ROW), columns=(1,), output=ROW)
    (result,) = Machine().run(summing, (x, torch.zeros(3)))
    torch.testing.assert_close(result, x.sum(1, keepdim=True))


def test_a_spilled_value_comes_back():
    spill, reload = Instruction("spill", operands=(R[0],), slot=0), Instruction("reload", R[1], slot=0)
    x, bias = torch.randn(4, 3), torch.randn(3)
    spilling = program(load(R[0], X), spill, load(R[0], BIAS), reload, store(R[1]))
    machine = Machine()
    assert torch.equal(machine.run(spilling, (x, bias))[0], x)
    assert (machine.counts.spills, machine.counts.reloads) == (1, 1)


def test_printing_a_program_shows_its_disassembly():
    assert str(ADD).splitlines() == [
        "program(x: float32[4, 3], bias: float32[3])",
        "kernel over [4, 3]",
        "    r0 = load x[4×3 by 3,1]",
        "    r1 = load bias[1×3 by 0,1]",
        "    r0 = add r0, r1",
        "    store out[4×3 by 3,1] = r0",
        "return out[4×3 by 3,1]",
    ]


@pytest.mark.parametrize("sentence", WRONG)
def test_what_no_machine_could_do_is_refused(sentence):
    with pytest.raises(BackendError, match=sentence):
        Machine(4).run(WRONG[sentence], (torch.randn(4, 3), torch.randn(3)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((torch.zeros(4, 3),), "takes 2 arguments and got 1"),
        ((torch.zeros(4, 3), torch.zeros(4)), r"compiled for bias: float32\[3\], and got float32\[4\]"),
        ((torch.zeros(4, 3), 3), "got 3, which is no tensor"),
        ((torch.zeros(3, 4).t(), torch.zeros(3)), "has strides"),
        ((torch.zeros(4, 3).double(), torch.zeros(3)), r"got float64\[4, 3\]"),
    ],
)
def test_arguments_that_do_not_fit_the_program_are_refused(arguments, sentence):
    with pytest.raises(BackendError, match=sentence):
        Machine().run(ADD, arguments)


def test_instructions_and_machines_that_make_no_sense_are_refused():
    for wrong in (
        lambda: Instruction("shout", R[0], (R[1],)),
        lambda: Instruction("add", R[0], (R[1],)),
        lambda: Instruction("store", R[0], (R[1],), (whole(X),)),
        lambda: Access("x", (2, 3), (1,)),
        lambda: Machine(3),
        lambda: Machine("many"),
        lambda: dataclasses.replace(ADD, outputs=(Access("nowhere", (1,), (1,)),)),
        lambda: dataclasses.replace(ADD, buffers=(X, X, OUT)),
    ):
        with pytest.raises(BackendError):
            wrong()
