"""Triton's interpreter: it runs the programs of a kernel one after the other on a CPU, with NumPy.

Triton decides when it is imported whether it interprets. Private parts of Triton are reached here alone; checked with
triton 3.7.1.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
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
        raise KernelError(
            "Triton was imported to compile kernels. Call `use_interpreter()` of course_lib.kernel_programs before the "
            "`import triton` of your kernels, or set TRITON_INTERPRET=1 before Python starts."
        )
    return interpreter


def triton_runs_on(tensor: torch.Tensor) -> bool:
    """Tell whether Triton can run a kernel on this tensor here: on CUDA, or anywhere in its interpreter.

    >>> triton_runs_on(torch.ones(2))  # doctest: +SKIP
    False
    """
    return tensor.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"


def use_interpreter() -> None:
    """Have Triton interpret from now on: set TRITON_INTERPRET, and import Triton anew if it was imported to compile.

    Others import it, such as Dynamo. Call this before the kernel's own `import triton`; what was imported before stays
    the Triton that compiles.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        interpreter_of_triton()
    except KernelError:
        # its compiled library, which knows no environment, stays
        for name in [name for name in sys.modules if name.split(".")[0] == "triton" and "._C" not in name]:
            del sys.modules[name]
        interpreter_of_triton()


def patch_language_for_good(interpreter: Any) -> None:
    """Put the interpreter's own functions into Triton's language now, and leave them there.

    By itself the interpreter does so in each call of a function such as `tl.sum`, which takes longer than the sum, and
    takes them out after each kernel. No kernel can be compiled in this process afterwards. A kernel that asks whether a
    block of several elements is true raises `KernelError`: Triton compiles no such kernel, and NumPy has an answer.
    """
    import triton.language as tl

    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda function: interpreter._LangPatchScope()
    truth = tl.tensor.__bool__

    def refusing(block: Any) -> bool:
        in_a_text = sys._getframe(1).f_code.co_filename.startswith("<")  # and not in Triton's own code
        if in_a_text and block.handle.data.size != 1:
            raise KernelError(
                "A block of several elements has no truth value: use & and | in masks, and tl.where instead of if."
            )
        return bool(truth(block))

    tl.tensor.__bool__ = refusing


@contextlib.contextmanager
def without_launches() -> Iterator[None]:
    """Have `kernel[grid](...)` do nothing inside of the block, so that a launcher only makes its tensors.

    with without_launches():
        copy(torch.empty(3, device="meta"))  # a tensor on the device "meta"
    """
    interface = importlib.import_module("triton.runtime.jit").KernelInterface
    launch = interface.__getitem__
    interface.__getitem__ = lambda kernel, grid: lambda *args, **options: None
    try:
        yield
    finally:
        interface.__getitem__ = launch
