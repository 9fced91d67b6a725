"""A sealed worker starts no process, maps no code and opens no file to write, and still imports and reads."""

import os
import subprocess
import sys

import pytest

from autograder.worker.confinement import seal
from autograder.worker.confinement.self_confinement import ALLOW, RETURN, instruction

TRIED = {
    "a process": "os.fork()",
    "a process by the C library": "called(libc.fork)",
    "a program": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "another program": "subprocess.run([sys.executable, '-c', ''])",
    "code in new memory": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "code of a file": "mmap.mmap(os.open(sys.executable, os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_EXEC)",
    "a file to write": "open('/tmp/sealed', 'w')",
    "its own memory": "open('/proc/self/mem', 'r+b')",
    "a file to append to": "os.open('/tmp/sealed', os.O_RDWR | os.O_CREAT)",
}
ALLOWED = {
    "an import": "import statistics, decimal, _bisect",
    "a file to read": "open('/proc/self/maps').read()",
    "memory": "bytearray(1 << 24)",
    "a thread's end": "print('told')",
}
PROGRAM = """
import ctypes, mmap, os, subprocess, sys
from autograder.worker.confinement.seal import seal

libc = ctypes.CDLL(None, use_errno=True)

def called(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")

seal()
{}
os._exit(17)
"""


def ended(statement: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(statement)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("statement", TRIED.values(), ids=TRIED)
def test_what_brings_back_withdrawn_code_is_refused(statement: str) -> None:
    status, told = ended(statement)
    assert status == 1
    assert "PermissionError" in told


@pytest.mark.parametrize("statement", ALLOWED.values(), ids=ALLOWED)
def test_what_an_answer_needs_is_allowed(statement: str) -> None:
    assert ended(statement) == (17, "")


@pytest.mark.parametrize("machine", seal.MACHINES)
def test_the_program_of_each_machine_is_whole_instructions_that_end_in_leave(machine: str) -> None:
    program = seal.program(machine)
    assert len(program) % 8 == 0
    assert program[-8:] == instruction(RETURN, ALLOW)
    assert os.uname().machine in seal.MACHINES
