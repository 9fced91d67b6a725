"""A toy machine to compile for: a few registers, readable instructions, and counts of all costs.

Read the files in this order: `programs.py` (buffers, accesses, the instruction set, kernels, programs, and their
costs), `machine.py` (the interpreter and its arithmetic), `assembly.py` (programs from plain data). This package does
not use graphs; the compiler is `course_lib.backends.toy`.
"""

from course_lib.machine.assembly import COMPUTES, Region, assemble
from course_lib.machine.machine import Machine
from course_lib.machine.programs import (
    FORMS,
    Access,
    Buffer,
    Counts,
    Form,
    Immediate,
    Instruction,
    Kernel,
    Operand,
    Program,
    Register,
    Unit,
    counts_of,
    whole,
)

__all__ = [  # noqa: RUF022  # in plain order, constants among the rest
    "Access",
    "Buffer",
    "COMPUTES",
    "Counts",
    "FORMS",
    "Form",
    "Immediate",
    "Instruction",
    "Kernel",
    "Machine",
    "Operand",
    "Program",
    "Region",
    "Register",
    "Unit",
    "assemble",
    "counts_of",
    "whole",
]
