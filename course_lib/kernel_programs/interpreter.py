"""Triton's interpreter: it runs the programs of a kernel one after the other on a CPU, with NumPy.

Triton decides when it is imported whether it interprets. Private parts of Triton are reached here alone; checked with
triton 3.7.1.
"""

import importlib
import os
from typing import Any

import torch

from course_lib.errors import KernelError


def interpreter_of_triton() -> Any:
    """Return Triton's module `interpreter`; raise `KernelError` if Triton compiles kernels or is not installed.

    >>> interpreter_of_triton().interpreter_builder.grid_dim  # doctest: +SKIP
    (4, 1, 1)
    """
    try:
        language = importlib.import_module("triton.language")
        interpreter = importlib.import_module("triton.runtime.interpreter")
    except ImportError:
        raise KernelError(
            "Triton is not installed: `pip install triton`, in the version that this torch asks for."
        ) from None
    if not isinstance(language.sum, interpreter.InterpretedFunction):
        found = os.environ.get("TRITON_INTERPRET", "missing")
        raise KernelError(
            f"Triton was imported to compile kernels, and TRITON_INTERPRET is {found}. Triton reads it once: restart, and "
            'set os.environ["TRITON_INTERPRET"] = "1" before the first import of Triton.'
        )
    return interpreter


def triton_runs_on(tensor: torch.Tensor) -> bool:
    """Tell whether Triton can run a kernel on this tensor here: on CUDA, or anywhere in its interpreter.

    >>> triton_runs_on(torch.ones(2))  # doctest: +SKIP
    False
    """
    return tensor.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"
