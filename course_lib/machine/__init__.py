"""A toy machine to compile for: a few registers, instructions one can read, and a count of everything that costs.

Read the files in this order: `memory.py` (buffers, and walks through them), `instructions.py` (the instruction set),
`programs.py` (kernels and programs), `machine.py` (the interpreter), and `counts.py` with `arithmetic.py` where a
detail matters. Nothing here knows of graphs; the compiler is `course_lib.backends.toy`.
"""

from course_lib.machine.counts import Counts, counts_of
from course_lib.machine.instructions import FORMS, Form, Immediate, Instruction, Operand, Register, Unit
from course_lib.machine.machine import Machine
from course_lib.machine.memory import Access, Buffer, whole
from course_lib.machine.programs import Kernel, Program

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
