"""Rows of plain data become a program that computes what they say, and rows that are no instructions are refused."""

import pytest
import torch

from course_lib.errors import BackendError
from course_lib.machine import COMPUTES, FORMS, Machine, assemble

REGION = {
    "space": [4, 3],
    "inputs": {"x": [[4, 3], [1, 4]], "bias": [[3], [1]], "column": [[4, 1], [1, 1]]},
    "outputs": {"y": [[4, 3], [3, 1]], "m": [[4, 1], [1, 1]]},
}
LOADS = [["load", "r0", "x", [1, 4]], ["load", "r1", "bias", [0, 1]]]
# Each text is part of the sentence that a wrong row gets.
WRONG = {
    "names no instruction": ["conv", "r0", "r1"],
    "expected [\"load\", register, input, strides], and the region has x, bias": ["load", "r0", "y", [3, 1]],
    "expected [\"store\", output": ["store", "x", [3, 1], "r0"],
    "expected [\"spill\", slot": ["spill", "r0"],
    "2 operands": ["add", "r0", "r1"],
    "'x' is no register": ["exp", "r0", "x"],
    "0.5 is no register": ["sub", "r0", 0.5, "r0"],
    "nan is no register": ["add", "r0", "r0", float("nan")],
    "True is no register": ["add", "r0", "r0", True],
    "'r0' is no slot": ["reload", "r0", "r0"],
    "expected 2 whole numbers": ["load", "r0", "bias", [1]],
    "expected 2 whole numbers that are not negative": ["load", "r0", "bias", [0, -1]],
    "the last one is 2. Use stride 0": ["load", "r0", "bias", [1, 0]],
    "names no instruction. There are load": [],
}  # fmt: skip


def arguments():
    return torch.randn(3, 4).t(), torch.randn(3), torch.randn(4, 1)


def test_rows_compute_what_they_say_with_transposed_and_repeated_inputs():
    x, bias, column = arguments()
    rows = [
        *LOADS,
        ["add", "r0", "r0", "r1"],
        ["load", "r1", "column", [1, 0]],
        ["mul", "r1", "r0", "r1"],
        ["spill", 0, "r1"],
        ["sum.row", "r1", "r0"],
        ["store", "m", [1, 0], "r1"],
        ["reload", "r2", 0],
        ["max", "r2", "r2", 0],
        ["store", "y", [3, 1], "r2"],
    ]
    program = assemble(REGION, rows)
    y, m = Machine(4).run(program, (x, bias, column))

    torch.testing.assert_close(y, ((x + bias) * column).relu())
    torch.testing.assert_close(m, (x + bias).sum(1, keepdim=True))
    assert (program.counts.loads, program.counts.stores, program.counts.spills, program.counts.reloads) == (3, 2, 1, 1)
    assert program.counts.bytes_read == 4 * (12 + 3 + 4)
    assert program.counts.bytes_written == 4 * (12 + 4)


@pytest.mark.parametrize(("words", "row"), WRONG.items(), ids=WRONG)
def test_a_row_that_is_no_instruction_is_refused_with_what_was_expected(words, row):
    with pytest.raises(BackendError) as caught:
        assemble(REGION, [row])
    assert words in str(caught.value)


@pytest.mark.parametrize("name", COMPUTES)
def test_every_instruction_on_registers_can_be_written_as_a_row(name):
    row = [name, "r2", *["r0", "r1"][: FORMS[name].operands]]
    program = assemble(REGION, [*LOADS, row, ["store", "y", [3, 1], "r2"]], dtype=torch.float64)
    (y, _) = Machine(4).run(program, [each.double() for each in arguments()])
    assert y.shape == (4, 3)


def test_a_value_for_each_column_is_not_stored_once_a_row():
    program = assemble(REGION, [*LOADS, ["store", "m", [1, 0], "r0"]])
    with pytest.raises(BackendError, match=r"stores a value of shape \[4, 3\] in \[4, 1\]"):
        Machine(4).run(program, arguments())
