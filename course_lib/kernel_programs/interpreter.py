"""Triton's interpreter: it runs the programs of a kernel one after the other on a CPU, with NumPy.

Triton decides when it is imported whether it interprets. Private parts of Triton are reached here alone; checked with
triton 3.7.1.
"""

import importlib
import os
from types import SimpleNamespace
from typing import Any

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


def patch_language_for_good(interpreter: Any) -> None:
    """Put the interpreter's own functions into Triton's language now, and leave them there.

    By itself the interpreter does so in each call of a function such as `tl.sum`, which takes longer than the sum, and
    takes them out after each kernel. No kernel can be compiled in this process afterwards.
    """
    import triton.language as tl

    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda function: interpreter._LangPatchScope()
