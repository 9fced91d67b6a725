"""What lies in memory, and how an instruction walks through it."""

import math
from dataclasses import dataclass

import torch

from course_lib.errors import BackendError


@dataclass(frozen=True)
class Buffer:
    """A named piece of memory: what a program is given, what it gives back, or what one launch leaves for another."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.name}: {str(self.dtype).removeprefix('torch.')}{list(self.shape)}"


@dataclass(frozen=True)
class Access:
    """A walk through a buffer: element (i, j, …) is the one at `offset + i * strides[0] + j * strides[1] + …`.

        >>> str(Access("x", shape=(4, 3), strides=(1, 4)))
        'x[4×3 by 1,4]'

    So one buffer can be read as it is, transposed, in part, or (with a stride of 0) the same element many times,
    and no view of a tensor costs an instruction. Offset and strides count elements.
    """

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise BackendError(f"An access has one stride for each size; it got {self.shape} and {self.strides}.")

    @property
    def distinct_elements(self) -> int:
        """How many different elements the walk meets."""
        return math.prod(size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0)

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the walk through `tensor` as a view of it."""
        return tensor.as_strided(self.shape, self.strides, tensor.storage_offset() + self.offset)

    def __str__(self) -> str:
        if not self.shape:
            return self.buffer + (f" +{self.offset}" if self.offset else "")
        sizes, steps = "×".join(map(str, self.shape)), ",".join(map(str, self.strides))
        return f"{self.buffer}[{sizes} by {steps}{f' +{self.offset}' if self.offset else ''}]"


def whole(buffer: Buffer) -> Access:
    """Return the walk that meets every element of a buffer in the order of its shape."""
    return Access(buffer.name, buffer.shape, buffer.strides)
