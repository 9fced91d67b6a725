"""Fill what a masked load without `other=` leaves undefined on a GPU, and Triton's interpreter sets to 0."""

import sys
from collections.abc import Collection
from typing import Any

import numpy as np

OWN = __package__


class UndefinedLanes:
    """Give NaN in such lanes, or a large odd number where the elements are integers; note the lines of these loads.

    A lane under a true mask, and a load with `other=`, stay as they are. Loads of the lines in `zero_at` get 0. A run
    that gives the same with all lines of `lines` in `zero_at` depends on no such lane.
    """

    def __init__(self) -> None:
        self.lines: list[int] = []
        """The lines of the loads that left lanes undefined, each once."""
        self.zero_at: Collection[int] = ()

    def open(self, builder: Any) -> None:
        """Have the interpreter's builder fill the lanes, until `close`."""
        original = type(builder).create_masked_load

        def create_masked_load(pointers: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
            found = original(builder, pointers, mask, other, *options, **named)
            read = np.broadcast_to(mask.data, found.data.shape)
            if other is None and not read.all():
                line = line_of_kernel()
                if line not in self.lines:
                    self.lines.append(line)
                if line not in self.zero_at:
                    found.data = np.where(read, found.data, _undefined(found.data.dtype, found.dtype.scalar))
            return found

        builder.create_masked_load = create_masked_load

    @staticmethod
    def close(builder: Any) -> None:
        """End `open`."""
        del builder.create_masked_load


def line_of_kernel() -> int:
    """Return the line of the innermost function that belongs neither to Triton nor to this package."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_globals.get("__package__") == OWN or "/triton/" in frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_lineno


def _undefined(dtype: np.dtype[Any], element: Any) -> Any:
    if dtype.kind == "f" or (dtype.kind == "u" and element.is_floating()):  # bfloat16 and 8-bit floats come as bytes
        return np.full(1, 0xFF, np.uint8).repeat(dtype.itemsize).view(dtype)
    if dtype.kind == "b":
        return np.ones(1, dtype)
    return np.full(1, np.iinfo(dtype).max // 2 | 1, dtype)
