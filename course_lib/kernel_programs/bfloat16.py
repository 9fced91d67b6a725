"""Refuse arithmetic in bfloat16 where Triton's interpreter runs: NumPy has no such numbers, and would add their bits.

Conversions are made right: to and from every other type, rounded to the nearest number as PyTorch does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from course_lib.errors import KernelError

NAME = "bf16"
_ARITHMETIC = """
    fadd fsub fmul fdiv frem precise_divf minimumf minnumf maximumf maxnumf clampf fma fabs cos sin exp exp2 floor ceil
    log log2 sqrt precise_sqrt rsqrt erf dot fcmpOLT fcmpOGT fcmpOLE fcmpOGE fcmpOEQ fcmpONE fcmpULT fcmpUGT fcmpULE
    fcmpUGE fcmpUEQ fcmpUNE
"""
_CASTS = "si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc fp_to_fp"
REFUSED = (
    "Triton's interpreter cannot compute in bfloat16: it takes the bits of a number for an integer. Convert a block "
    "right after its load, x.to(tl.float32), compute in float32, and let the store convert it back."
)


class Bfloat16:
    """Change the functions of the interpreter's builder for as long as it is open."""

    def __init__(self, interpreter: Any) -> None:
        self._interpreter, self._builder = interpreter, interpreter.interpreter_builder
        self._apply = interpreter.ReduceScanOpInterface.apply

    def open(self) -> None:
        """Refuse arithmetic in bfloat16, and convert it right, until `close`."""
        for name in _names(_ARITHMETIC):
            setattr(self._builder, name, _refusing(getattr(self._builder, name)))
        for name in _names(_CASTS):
            setattr(self._builder, name, _casting(getattr(self._builder, name), self._interpreter))

        def get_bf16(value: float) -> Any:
            bits = torch.tensor([value], dtype=torch.bfloat16).view(torch.uint16).numpy()
            return self._interpreter.TensorHandle(bits, self._builder.get_bf16_ty())

        def applied(operation: Any, blocks: Any) -> Any:
            several = blocks if isinstance(blocks, tuple) else (blocks,)
            _refuse(*(each.handle for each in several if hasattr(each, "handle")))
            return self._apply(operation, blocks)

        self._builder.get_bf16 = get_bf16  # which the interpreter lacks
        self._interpreter.ReduceScanOpInterface.apply = applied

    def close(self) -> None:
        """End `open`."""
        for name in (*_names(_ARITHMETIC), *_names(_CASTS), "get_bf16"):
            delattr(self._builder, name)
        self._interpreter.ReduceScanOpInterface.apply = self._apply


def _names(words: str) -> list[str]:
    return [f"create_{word}" for word in words.split()]


def _is_bfloat16(handle: Any) -> bool:
    return getattr(getattr(getattr(handle, "dtype", None), "scalar", None), "name", "") == NAME


def _refuse(*handles: Any) -> None:
    if any(map(_is_bfloat16, handles)):
        raise KernelError(REFUSED)


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(*args: Any) -> Any:
        _refuse(*args)
        return function(*args)

    return refusing


def _casting(function: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def casting(block: Any, dtype: Any, *rest: Any) -> Any:
        to_bfloat16 = dtype.scalar.name == NAME
        if not to_bfloat16 and not _is_bfloat16(block):
            return function(block, dtype, *rest)
        data = torch.from_numpy(np.array(block.data))  # a copy, since some blocks are not writable
        if _is_bfloat16(block):
            data = data.view(torch.bfloat16)
        if to_bfloat16:
            found = data.to(torch.bfloat16).view(torch.uint16).numpy()
        else:
            found = data.to(torch.float64).numpy().astype(interpreter._get_np_dtype(dtype.scalar))
        return interpreter.TensorHandle(found, dtype.scalar)

    return casting
