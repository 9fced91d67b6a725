"""Compile the bodies of the fused operators for a CPU into this installation, once.

    python -m course_lib.kernels.cpu.build          for this machine
    python -m course_lib.kernels.cpu.build --all    for all processors of its kind, as an image needs it

A library that is there is not compiled again. The build may be killed or run twice at once: a library appears whole,
under its own name, after it was loaded and tried. Exit status: 0 if the library is there, else 1, with one sentence;
fused operators then run as separate PyTorch operators.
"""

import argparse
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_lib.errors import KernelError
from course_lib.kernels.cpu import library

UNFINISHED = ".unfinished-"


def build(instruction_set: str) -> Path:
    """Compile the library for an instruction set, unless it is there; return its path.

    Raises `KernelError` if there is no compiler, it fails, or the installation cannot be written.
    """
    path = library.library_path(instruction_set)
    if path.is_file():
        return path
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise KernelError("There is no g++ on this machine; install it (Debian: apt-get install g++).")
    try:
        with _only_builder(path.parent), tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent) as folder:
            if not path.is_file():  # another process may have built it meanwhile
                _compile(compiler, instruction_set, Path(folder)).replace(path)
    except OSError as error:
        raise KernelError(f"The library cannot be written into {path.parent}: {error.strerror or error}.") from error
    return path


@contextlib.contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    """Let one process build at a time, and remove what killed ones left; the kernel frees the lock of a killed one."""
    import fcntl  # missing on Windows, where other modules of this package are of use

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(UNFINISHED + "*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _compile(compiler: str, instruction_set: str, folder: Path) -> Path:
    """Compile into an empty folder with torch's builder of extensions, and return the library, tried and on disk."""
    made = folder / "bodies.so"
    program = [sys.executable, "-c", _BUILDER, str(library.SOURCES / "bodies.cpp"), str(folder)]
    macros = [f"-DCPU_CAPABILITY={instruction_set}", f"-DCPU_CAPABILITY_{instruction_set}"]
    environment = os.environ | {
        "CC": compiler,
        "CXX": compiler,
        "LDSHARED": f"{compiler} -shared",
        "TMPDIR": str(folder),
    }
    answer = subprocess.run(
        [*program, *library.COMMON_OPTIONS, *macros, *library.OPTIONS[instruction_set]],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0 or not made.is_file():
        lines = [line for line in answer.stderr.splitlines() if "error" in line.lower()] or ["it gave no reason"]
        raise KernelError(f"{compiler} could not compile the bodies: {lines[0].strip()[:300]}")
    if instruction_set == library.instruction_sets()[0]:
        _try(made)
    made.chmod(0o755)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made


# In a process of its own, since setuptools changes the process, and prints.
_BUILDER = """
import sys
from setuptools import Distribution
from torch.utils.cpp_extension import BuildExtension, CppExtension

source, folder, *options = sys.argv[1:]
extension = CppExtension("bodies", [source], extra_compile_args=options, py_limited_api=True)
command = BuildExtension(Distribution({"ext_modules": [extension]}), use_ninja=False, no_python_abi_suffix=True)
command.build_lib = command.build_temp = folder
command.ensure_finalized()
command.run()
"""


_TRIAL = """
import sys, torch
torch.ops.load_library(sys.argv[1])
x, bias = torch.randn(3, 37), torch.randn(37)
found = torch.ops.course_lib_cpu.activate(x, bias, "silu")
torch.testing.assert_close(found, torch.nn.functional.silu(x + bias))
"""


def _try(made: Path) -> None:
    """Raise `KernelError` unless the library computes rightly; in a process of its own, which it may end."""
    answer = subprocess.run([sys.executable, "-c", _TRIAL, made], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]
        raise KernelError(f"The compiled bodies do not run on this machine: {reason[:300]}")


def main(arguments: Sequence[str]) -> int:
    """Build what the command line asks for, and say where it is, or why it is not."""
    parser = argparse.ArgumentParser(prog=library.BUILD, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="for all processors of this kind, as an image needs it")
    wanted = ["AVX512", "AVX2"] if platform.machine() == "x86_64" else ["DEFAULT"]
    if not parser.parse_args(arguments).all:
        wanted = [library.instruction_sets()[0]]
    try:
        for instruction_set in wanted:
            print(build(instruction_set))
    except KernelError as error:
        print(f"Fused operators will run as separate PyTorch operators: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
