"""Take the code of withdrawn operators out of this process, so that nobody calls it by its name in PyTorch's library.

PyTorch's libraries export the C++ functions behind the operators, and `ctypes` calls whatever is exported: one library
has those for a CPU, others those for a GPU. The first bytes of each are replaced, in this process alone, by an
instruction that ends it. Written for 64-bit ELF files, as on Linux; refused elsewhere.
"""

import ctypes
import mmap
import platform
import re
import struct
from collections.abc import Collection, Iterator
from pathlib import Path

import torch

from autograder.worker.source import AnswerError

LIBRARIES = Path(torch.__file__).parent / "lib"
NAMES = "libtorch*.so"
INVALID = {"x86_64": b"\x0f\x0b", "aarch64": b"\x00\x00\x00\x00"}
"""An instruction that no processor of this kind has; the process ends with SIGILL."""
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_FIXED = 0x10
_HEADER, _SECTION = struct.Struct("<16xHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
_STRINGS = 3  # the type of a section of names
_LOADED = 2  # the flag of a section that is in memory when the library runs


def remove_code(operators: Collection[str]) -> None:
    """Remove the functions of the namespace `at::native` whose names begin with one of these operators' names.

    Raises `AnswerError` on a machine whose code is not known here.
    """
    if (platform.system(), platform.machine()) not in {("Linux", machine) for machine in INVALID}:
        raise AnswerError(
            f"This exercise takes operators out of PyTorch's code, known for Linux on {' and '.join(INVALID)}, "
            f"not for {platform.system()} on {platform.machine()}: check it on such a machine"
        )
    names = b"|".join(re.escape(name.encode()) for name in sorted(operators, key=len, reverse=True))
    pattern = re.compile(rb"_ZN2at6native(\d+)((?:%s)\w*)" % names)
    for path in sorted(LIBRARIES.glob(NAMES)):
        if symbols := [*_exported(path, pattern)]:
            library = ctypes.CDLL(str(path))
            for symbol in symbols:
                _overwrite(ctypes.cast(library[symbol], ctypes.c_void_p).value or 0)


def _exported(path: Path, pattern: re.Pattern[bytes]) -> Iterator[str]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        fields = _HEADER.unpack_from(text)
        start, size, count = fields[5], fields[10], fields[11]
        for number in range(count):
            _, kind, flags, _, offset, length, *_ = _SECTION.unpack_from(text, start + number * size)
            if kind == _STRINGS and flags & _LOADED:
                for found in pattern.finditer(text, offset, offset + length):
                    after = found[2][int(found[1]) :]
                    if after.startswith(b"E") and len(after) > 1:  # the types of its arguments; data has none
                        yield found[0].decode()


def _overwrite(address: int) -> None:
    """Put the invalid instruction there, in memory of no file: `madvise` would bring a file's own bytes back."""
    words, page = INVALID[platform.machine()], mmap.PAGESIZE
    begin = address - address % page
    length = -(-(address + len(words) - begin) // page) * page
    code = bytearray(ctypes.string_at(begin, length))
    code[address - begin : address - begin + len(words)] = words
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
    if library.mmap(begin, length, PROT_READ | PROT_WRITE, flags, -1, 0) != begin:
        raise OSError(ctypes.get_errno(), "PyTorch's code could not be replaced")
    ctypes.memmove(begin, bytes(code), length)
    library.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(length), PROT_READ | PROT_EXEC)
    if platform.machine() != "x86_64":
        _flush(begin, length)


def _flush(begin: int, length: int) -> None:
    """Make the processor read this code anew; one of x86-64 does so by itself."""
    ctypes.CDLL("libgcc_s.so.1")["__clear_cache"](ctypes.c_void_p(begin), ctypes.c_void_p(begin + length))
