"""Compile a loop in C++ for this machine, and call it on the memory of tensors."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from course_lib.errors import KernelError

# Vector instructions of this processor; `omp simd` allows a sum in another order, and links no library.
OPTIONS = ("-std=c++20", "-O3", "-march=native", "-fopenmp-simd", "-shared", "-fPIC")


def compiled_loop(source: str, name: str) -> Callable[..., None]:
    """Compile the text with g++, and return the function `name` that it declares as `extern "C" void`.

    The function takes contiguous tensors of float32 on the CPU as `float*`, integers as `long`, floats as `double`.
    Raises `KernelError` if there is no compiler, or with the first error of the compiler.

    >>> text = 'extern "C" void twice(float* x, long n) { for (long i = 0; i < n; ++i) x[i] *= 2; }'
    >>> x = torch.ones(3)
    >>> compiled_loop(text, "twice")(x, 3)
    >>> x
    tensor([2., 2., 2.])
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise KernelError("There is no g++ on this machine; install it (Debian: apt-get install g++).")
    with tempfile.TemporaryDirectory() as folder:  # the library stays in memory when its file is gone
        text, made = Path(folder, "loop.cpp"), Path(folder, "loop.so")
        text.write_text(source, "utf-8")
        command = [compiler, *OPTIONS, str(text), "-o", str(made)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            lines = [line for line in answer.stderr.splitlines() if "error" in line] or ["it gave no reason"]
            raise KernelError(f"g++ could not compile the loop: {lines[0].removeprefix(str(text)).strip(':')[:300]}")
        library = ctypes.CDLL(str(made))
    if not hasattr(library, name):
        raise KernelError(f'The text declares no `{name}`: write `extern "C" void {name}(...)`.')
    function = library[name]
    function.restype = None

    def call(*arguments: torch.Tensor | int | float) -> None:
        function(*map(_as_c, arguments))  # ctypes lets go of the interpreter's lock meanwhile

    return call


def _as_c(argument: torch.Tensor | int | float) -> object:
    if isinstance(argument, torch.Tensor):
        form = argument.dtype is torch.float32 and argument.is_contiguous() and argument.is_cpu
        if not form:
            raise KernelError(
                f"The loop got a tensor of {argument.dtype} with strides {argument.stride()} on {argument.device}; "
                "it takes contiguous tensors of float32 on the CPU."
            )
        return ctypes.c_void_p(argument.data_ptr())
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_long(argument)
