"""A toy machine to compile for: a few registers, instructions one can read, and a count of everything that costs.

Read the files in this order: `programs.py` (buffers, walks through them, the instruction set, kernels, programs, and
what they cost), `machine.py` (the interpreter and its arithmetic). Nothing here knows of
graphs; the compiler is `course_lib.backends.toy`.
"""

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
    "Counts",
    "FORMS",
    "Form",
    "Immediate",
    "Instruction",
    "Kernel",
    "Machine",
    "Operand",
    "Program",
    "Register",
    "Unit",
    "counts_of",
    "whole",
]
