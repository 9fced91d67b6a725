"""Fill what a masked load without `other=` leaves undefined on a GPU, and Triton's interpreter sets to 0."""

import sys
from collections.abc import Collection
from typing import Any

import numpy as np

OWN = __package__
LARGEST_NAN_LOWEST = {
    "bf16": (0x7F7F, 0xFFFF, 0xFF7F),
    "fp8e5": (0x7B, 0x7F, 0xFB),
    "fp8e4nv": (0x7E, 0x7F, 0xFE),
    "fp8e5b16": (0x7F, 0x80, 0xFF),  # these two have one NaN, where others have a negative zero
    "fp8e4b8": (0x7F, 0x80, 0xFF),
    "fp8e4b15": (0x7F, 0xFF),  # has no NaN
}
"""The bits of three numbers of each floating-point dtype that NumPy lacks, by Triton's name."""


class UndefinedLanes:
    """Give values in such lanes that spoil a result which depends on them; note the lines of these loads.

    These are the largest number, NaN and the lowest number in turn, since a maximum passes over NaN; where the elements
    are integers, a large odd number. A lane under a true mask, and a load with `other=`, stay as they are. Loads of the
    lines in `zero_at` get 0. A run that gives the same with all lines of `lines` in `zero_at` depends on no such lane.
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
                    found.data = found.data.copy()
                    lanes = np.arange(read.size - np.count_nonzero(read))
                    found.data[~read] = undefined(found.data.dtype, found.dtype.scalar).take(lanes, mode="wrap")
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


def undefined(dtype: np.dtype[Any], element: Any) -> Any:
    """Return the values that stand in turn for what nobody has written; `element` is Triton's name of the dtype."""
    if dtype.kind == "f":
        limit = np.finfo(dtype).max
        return np.array([limit, np.nan, -limit], dtype)
    if dtype.kind == "u" and element.is_floating():  # NumPy has the bits only
        return np.array(LARGEST_NAN_LOWEST[element.name], dtype)
    if dtype.kind == "b":
        return np.ones(1, dtype)
    return np.full(1, np.iinfo(dtype).max // 2 | 1, dtype)
