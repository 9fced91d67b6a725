"""Close a worker that only answers questions with plain data: no new process, no new code, no file to write.

What is withdrawn from PyTorch is gone from this process, and not from the files of the machine. Another process would
load it again, and code that is mapped or written anew would be there again.
"""

import errno
import importlib
import os
import platform
import sys
from pathlib import Path

from autograder.worker.confinement import kernel
from autograder.worker.confinement.self_confinement import ALLOW, EQUAL, LOAD, NUMBER_AT, REFUSE, RETURN, instruction

ARCHITECTURE_AT, ARGUMENT_AT = 4, 16  # in struct seccomp_data, whose arguments have eight bytes each
SET = 0x45  # linux/bpf_common.h: jump if one of these bits is set
ABSENT = 0x00050000 | errno.ENOSYS  # the C library falls back on an older call
OF_ANOTHER_ABI = 0x40000000  # x32
PROT_EXEC, WRITES = 4, os.O_WRONLY | os.O_RDWR
# linux/audit.h, and the numbers of system calls: with the argument that holds the bits that are refused, or without.
MACHINES: dict[str, tuple[int, dict[int, tuple[int, int]], tuple[int, ...], tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E,
        {
            9: (2, PROT_EXEC),  # mmap
            10: (2, PROT_EXEC),  # mprotect
            329: (2, PROT_EXEC),  # pkey_mprotect
            2: (1, WRITES),  # open
            257: (2, WRITES),  # openat
        },
        (56, 57, 58, 59, 322, 85, 135, 30),  # clone, fork, vfork, execve, execveat, creat, personality, shmat
        (435, 437),  # clone3, openat2
    ),
    "aarch64": (
        0xC00000B7,
        {222: (2, PROT_EXEC), 226: (2, PROT_EXEC), 288: (2, PROT_EXEC), 56: (2, WRITES)},  # the same, without open
        (220, 221, 281, 92, 196),
        (435, 437),
    ),
}
"""For each machine: its number, calls with a refused argument, calls that are refused, and calls that are absent."""


def seal() -> None:
    """Refuse such calls from now on; on a machine without numbers here, nothing is refused."""
    if platform.machine() in MACHINES:
        _import_what_answers_may_import()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.filter_system_calls(program(platform.machine()))


def program(machine: str) -> bytes:
    """Return the BPF program for a machine."""
    number, by_argument, refused, absent = MACHINES[machine]
    refuse, is_absent = instruction(RETURN, REFUSE), instruction(RETURN, ABSENT)
    load = instruction(LOAD, NUMBER_AT)
    code = instruction(LOAD, ARCHITECTURE_AT) + instruction(EQUAL, number, then=1) + refuse
    code += load + instruction(SET, OF_ANOTHER_ABI, otherwise=1) + refuse
    for call, (place, bits) in by_argument.items():
        body = instruction(LOAD, ARGUMENT_AT + 8 * place) + instruction(SET, bits, otherwise=1) + refuse + load
        code += instruction(EQUAL, call, otherwise=len(body) // 8) + body
    for call in refused:
        code += instruction(EQUAL, call, otherwise=1) + refuse
    for call in absent:
        code += instruction(EQUAL, call, otherwise=1) + is_absent
    return code + instruction(RETURN, ALLOW)


def _import_what_answers_may_import() -> None:
    """Load the standard library's modules in C, whose code could not be mapped afterwards."""
    folders = [Path(path) for path in sys.path if path.endswith("/lib-dynload")]
    names = {file.name.partition(".")[0] for folder in folders if folder.is_dir() for file in folder.iterdir()}
    for name in sorted(names & sys.stdlib_module_names):
        try:
            importlib.import_module(name)
        except ImportError:  # its library is not on this machine
            continue
