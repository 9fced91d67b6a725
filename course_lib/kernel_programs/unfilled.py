"""Fill what a masked load without `other=` leaves undefined on a GPU, and Triton's interpreter sets to 0."""

from typing import Any

import numpy as np


def fill_undefined(builder: Any) -> None:
    """Have the interpreter's builder give NaN in such lanes, or a large odd number where the elements are integers.

    It holds until `leave_zero`. A lane under a true mask, and a load with `other=`, stay as they are.
    """
    original = type(builder).create_masked_load

    def create_masked_load(pointers: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
        found = original(builder, pointers, mask, other, *options, **named)
        if other is None:
            read = np.broadcast_to(mask.data, found.data.shape)
            found.data = np.where(read, found.data, _undefined(found.data.dtype, found.dtype.scalar))
        return found

    builder.create_masked_load = create_masked_load


def leave_zero(builder: Any) -> None:
    """End `fill_undefined`."""
    del builder.create_masked_load


def _undefined(dtype: np.dtype[Any], element: Any) -> Any:
    if dtype.kind == "f" or (dtype.kind == "u" and element.is_floating()):  # bfloat16 and 8-bit floats come as bytes
        return np.full(1, 0xFF, np.uint8).repeat(dtype.itemsize).view(dtype)
    if dtype.kind == "b":
        return np.ones(1, dtype)
    return np.full(1, np.iinfo(dtype).max // 2 | 1, dtype)
