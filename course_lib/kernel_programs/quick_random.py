"""The numbers of Triton's `tl.rand`, computed at once: its interpreter calls NumPy for every step of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.kernels.dropout import TRITON_ROUNDS, TRITON_SCALE, WORD, philox


def quick_rand(interpreter: Any) -> Callable[..., Any]:
    """Return a function in the place of `tl.rand` for kernels that this interpreter runs.

    The numbers are the same ones. With a block of seeds, or another number of rounds, it is
    `tl.rand` itself.
    """
    import triton.language as tl

    original, semantic = tl.rand, interpreter.interpreter_semantic

    def rand(seed: Any, offset: Any, n_rounds: Any = TRITON_ROUNDS) -> Any:
        key, places = semantic.to_tensor(seed), semantic.to_tensor(offset)
        usual = key.dtype.is_int() and places.dtype.is_int()
        if not usual or key.handle.data.size != 1 or getattr(n_rounds, "value", n_rounds) != TRITON_ROUNDS:
            return original(seed, offset, n_rounds)
        number, positions = int(key.handle.data.flat[0]), places.handle.data.astype(np.int64)
        high = positions >> 32 if places.dtype.primitive_bitwidth > 32 else positions * 0
        counter = positions & WORD, high & WORD, positions * 0, positions * 0
        words = philox(counter, (number & WORD, (number >> 32) & WORD), rounds=TRITON_ROUNDS)[0]
        values = np.where(words > WORD >> 1, WORD - words, words).astype(np.float32) * np.float32(TRITON_SCALE)
        return tl.tensor(interpreter.TensorHandle(values, tl.float32), _like(tl, places))

    return rand


def _like(tl: Any, places: Any) -> Any:
    return tl.block_type(tl.float32, places.shape) if places.type.is_block() else tl.float32
