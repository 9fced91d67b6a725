"""A compiler for the toy machine of `course_lib.machine`: from a part of a graph to a program.

Read the files in the order of compilation: `instruction_set.py` (the supported operators and their instructions),
`views.py` (views are moved to where they cost nothing), `kernel_groups.py` (which operators share a launch),
`registers.py` (values get registers), and `toy_target.py` (instructions are written, and the program runs).
"""

from course_lib.backends.toy.instruction_set import SUPPORT, Kind, kind_of
from course_lib.backends.toy.kernel_groups import Work, group_into_kernels
from course_lib.backends.toy.registers import allocate
from course_lib.backends.toy.toy_target import ToyExecutable, ToyTarget, write_program

__all__ = [  # noqa: RUF022  # in plain order, constants among the rest
    "Kind",
    "SUPPORT",
    "ToyExecutable",
    "ToyTarget",
    "Work",
    "allocate",
    "group_into_kernels",
    "kind_of",
    "write_program",
]
